// The container of a `.qwyc` file: safetensors with one metadata entry, a JSON header with a
// checksum. docs/format.md describes it; src/qwyc/files/container.py is the same in Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/json.hpp"
#include "files/sha256.hpp"
#include "files/values.hpp"

namespace qwyc::files {

inline constexpr int kOldestFormat = 1, kNewestFormat = 2;

enum class Type : uint8_t { kU8, kU32, kU64, kI32, kI64, kF32, kF64 };

template <class T>
inline constexpr Type kTypeOf = Type::kU8;
template <>
inline constexpr Type kTypeOf<uint32_t> = Type::kU32;
template <>
inline constexpr Type kTypeOf<uint64_t> = Type::kU64;
template <>
inline constexpr Type kTypeOf<int32_t> = Type::kI32;
template <>
inline constexpr Type kTypeOf<int64_t> = Type::kI64;
template <>
inline constexpr Type kTypeOf<float> = Type::kF32;
template <>
inline constexpr Type kTypeOf<double> = Type::kF64;

struct Tensor {
    Type type;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;  // aligned for its type

    // NumPy's string for the type, and the shape as Python writes it: what checksums are over.
    std::string described() const;
};

// The bytes of a file, aligned to 64.
class FileBytes {
  public:
    explicit FileBytes(size_t size);
    std::byte* data() { return data_.get(); }
    std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

  private:
    struct Free {
        void operator()(std::byte* data) const;
    };
    std::unique_ptr<std::byte, Free> data_;
    size_t size_;
};

// What a file holds, before anything is made of it.
class Container {
  public:
    // Checks the layout of the tensors: FileError where it does not hold.
    explicit Container(FileBytes file);

    // FileError where the contents do not match their checksum. To be called before what was read
    // is used, and before errors in it are reported. Reading is safe whatever a file holds.
    void check_checksum() const;

    // SHA-256 of a message. The checksum is computed in the same pass, which takes hardly longer
    // than the checksum alone. One thread only may call this and check_checksum.
    std::string hash_beside_checksum(const Message& message) const;

    // Tensors and values refer to this object's memory.
    Container(const Container&) = delete;
    Container& operator=(const Container&) = delete;

    int format() const { return format_; }
    const Json& body() const { return *body_; }
    const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
    bool has(std::string_view name) const { return tensors_.contains(name); }
    const Tensor& tensor(std::string_view name) const;

    // The numbers of a tensor of this type.
    template <class T>
    std::span<const T> values(std::string_view name) const {
        const Tensor& found = tensor(name);
        require(found.type == kTypeOf<T>, "a tensor has another type");
        return {reinterpret_cast<const T*>(found.bytes.data()), found.bytes.size() / sizeof(T)};
    }

  private:
    void read_tensors(const Json& layout, std::span<const std::byte> data);
    Message checked() const;

    FileBytes file_;
    std::vector<FileBytes> moved_;  // copies of tensors that are not aligned in the file
    std::string header_;            // the text of the header
    Json parsed_;
    const Json* body_ = nullptr;
    int format_ = 0;
    std::map<std::string, Tensor, std::less<>> tensors_;
    std::string expected_;          // checksum
    mutable std::string computed_;  // checksum; empty until it is computed
};

// Reads a file whole: what is checked must not change when the file does. A file that is not a
// `.qwyc` file is refused before all of it is read.
FileBytes read_file(const char* path);

// The size of the header, which the first bytes of a file state, if a file of this size can hold
// it.
size_t header_size(std::span<const std::byte> begin, size_t file_size);

}  // namespace qwyc::files
