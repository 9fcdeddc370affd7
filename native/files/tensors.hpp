// Which tensors a file must have, and of which types.
#pragma once

#include "files/container.hpp"
#include "files/model.hpp"

namespace qwyc::files {

// FileError where tensors are missing, unknown or of another type or number of axes. `target` is
// none for a model without a policy; `origins` are the sketches of rows that the header names.
// `model` knows its family.
void check_tensors(const Container& file, const ModelParts& model,
                   const std::optional<Target>& target, const std::vector<std::string>& origins);

}  // namespace qwyc::files
