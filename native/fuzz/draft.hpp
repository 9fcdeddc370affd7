// A `.qwyc` file that can be changed and sealed again, as a hostile writer would do.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace qwyc::fuzz {

struct DraftTensor {
    std::string name, type;  // as safetensors writes it, such as "F64"
    std::vector<int64_t> shape;
    std::string bytes;
};

class Draft {
  public:
    using Engine = std::minstd_rand;

    // The parts of a file; nothing where it is too damaged to have any.
    static std::optional<Draft> of(std::span<const uint8_t> file);

    // Changes a value of the header, or a tensor.
    void mutate(Engine& random);
    // Takes a tensor, or the value of a key, from another file.
    void mix(const Draft& other, Engine& random);

    // The file, with the digest of its model and its checksum computed anew where that can be done.
    std::string sealed();

  private:
    void mutate_body(Engine& random);
    void mutate_tensor(Engine& random);
    std::string checksum() const;
    std::string written() const;
    bool set_digest(const std::string& file);

    std::string body_, format_;
    std::vector<DraftTensor> tensors_;
};

}  // namespace qwyc::fuzz
