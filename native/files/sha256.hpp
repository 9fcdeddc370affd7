// SHA-256 (FIPS 180-4), by the processor's own instructions where it has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace qwyc::files {

class Sha256 {
  public:
    Sha256();

    void add(std::span<const std::byte> bytes);
    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

    // The digest of all that was added, as 64 hexadecimal digits. Nothing can be added afterwards.
    std::string hex();

    // State after `n` blocks of 64 bytes. Tests compare the two; `instructions` may be null.
    using Compress = void (*)(uint32_t* state, const std::byte* blocks, size_t n);
    static Compress portable();
    static Compress instructions();

    explicit Sha256(Compress compress);

  private:
    std::array<uint32_t, 8> state_;
    std::array<std::byte, 64> rest_;  // that is no whole block yet
    size_t n_rest_ = 0;
    uint64_t size_ = 0;
    Compress compress_;
};

}  // namespace qwyc::files
