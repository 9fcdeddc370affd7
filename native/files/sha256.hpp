// SHA-256 (FIPS 180-4), by the processor's own instructions where it has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qwyc::files {

// What is hashed, in pieces that follow each other. Those that are not kept must outlive it.
class Message {
  public:
    void add(std::span<const std::byte> bytes) { pieces_.push_back(bytes); }
    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
    void keep(std::string text) { add(std::string_view(kept_.emplace_back(std::move(text)))); }

    std::span<const std::span<const std::byte>> pieces() const { return pieces_; }

  private:
    std::vector<std::span<const std::byte>> pieces_;
    std::deque<std::string> kept_;  // which does not move what it holds
};

class Sha256 {
  public:
    Sha256();

    void add(std::span<const std::byte> bytes);
    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

    // The digest of all that was added, as 64 hexadecimal digits. Nothing can be added afterwards.
    std::string hex();

    // The digests of two messages in one pass. A processor with instructions for SHA-256 spends
    // most of the time waiting for the last one's result, and does the second message meanwhile.
    static std::pair<std::string, std::string> hex_of_both(const Message& a, const Message& b);

    // State after `n` blocks of 64 bytes. Tests compare the two; `instructions` may be null.
    using Compress = void (*)(uint32_t* state, const std::byte* blocks, size_t n);
    static Compress portable();
    static Compress instructions();

    explicit Sha256(Compress compress);

  private:
    class Blocks;

    std::array<uint32_t, 8> state_;
    std::array<std::byte, 64> rest_;  // that is no whole block yet
    size_t n_rest_ = 0;
    uint64_t size_ = 0;
    Compress compress_;
};

}  // namespace qwyc::files
