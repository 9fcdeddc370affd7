// Memory that a thread keeps from one call to the next, so that calls allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace qwyc {

// An array that grows and is not cleared, aligned to 64 bytes.
template <class T>
class Buffer {
  public:
    // At least n entries, whose values are whatever they were. Invalidates earlier pointers.
    T* of(size_t n) {
        if (n > size_) {
            data_.reset();
            size_ = 0;
            data_.reset(static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})));
            size_ = n;
        }
        return data_.get();
    }
    const T* data() const { return data_.get(); }
    size_t bytes() const { return size_ * sizeof(T); }
    void release() { data_.reset(), size_ = 0; }

  private:
    struct Free {
        void operator()(T* data) const { ::operator delete(data, std::align_val_t{64}); }
    };
    std::unique_ptr<T, Free> data_;
    size_t size_ = 0;
};

// What the evaluation of trees works in. Rows that quit use the first group, full scores the
// second.
struct Scratch {
    Buffer<int32_t> row, in_full;
    Buffer<double> sums, score;
    Buffer<uint64_t> alive;
    Buffer<uint8_t> lines;  // codes of rows

    Buffer<std::byte> tile, rows, codes;
    Buffer<int32_t> offset, leaf, trees;
    Buffer<float> single;
    Buffer<double> value, other;
    Buffer<float> values;  // of rows that are walked one by one
    Buffer<uint64_t> masks;
    Buffer<float> tree_values;  // what each tree adds to rows whose policies are counted, or
    Buffer<uint8_t> numbers;    // their leaf numbers
    Buffer<int32_t> kept_row;

    Buffer<std::byte> kept;  // columns of rows that go on
    Buffer<uint64_t> kept_alive;

    Buffer<std::byte> columns;  // of a table, converted
};

// The calling thread's.
inline Scratch& scratch() {
    thread_local Scratch mine;
    return mine;
}

}  // namespace qwyc
