// Errors of calls. Those of files are in files/values.hpp.
#pragma once

#include <stdexcept>

namespace qwyc::capi {

struct ArgumentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct RowsError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct CategoryError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace qwyc::capi
