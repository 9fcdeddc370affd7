// Arrays of Python objects that are the text of categories.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/table.hpp"
#include "python/arrays.hpp"

namespace qwyc {

// A str whose characters lie in it. Old versions of Python have others.
inline bool is_text(PyObject* object) {
#if PY_VERSION_HEX < 0x030C0000
    return PyUnicode_CheckExact(object) && PyUnicode_IS_READY(object);
#else
    return PyUnicode_CheckExact(object);
#endif
}

inline bool is_missing(PyObject* object) {
    return !object || object == Py_None ||
           (PyFloat_CheckExact(object) && std::isnan(PyFloat_AS_DOUBLE(object)));
}

// The characters of a str as UTF-8, without a call of Python, which would keep them in the object.
inline std::string utf8_of(PyObject* object) {
    std::string text;
    const auto n = PyUnicode_GET_LENGTH(object);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const auto c = static_cast<uint32_t>(
            PyUnicode_READ(PyUnicode_KIND(object), PyUnicode_DATA(object), i));
        const auto rest = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
        if (c < 0x80) {
            text += static_cast<char>(c);
        } else if (c < 0x800) {
            text += static_cast<char>(0xc0 | c >> 6), rest(0);
        } else if (c < 0x10000) {  // halves of pairs, too: no category has bytes like these
            text += static_cast<char>(0xe0 | c >> 12), rest(6), rest(0);
        } else {
            text += static_cast<char>(0xf0 | c >> 18), rest(12), rest(6), rest(0);
        }
    }
    return text;
}

// An array of Python objects that are the text of categories. Objects are read without a call of
// Python, by any thread, as long as the thread that waits for it has Python's lock.
class Objects : public ForeignCells {
  public:
    Objects(const char* at, Py_ssize_t stride, int64_t n, std::shared_ptr<const TextCodes> texts)
        : at_(at), stride_(stride), n_(n), texts_(std::move(texts)) {
        Seen seen;
        int64_t hits = 0;
        for (int64_t i = 0; i < std::min(n_, kSample); ++i) {
            if (i == kSample / 8 && hits < i / 8) break;  // they hardly ever do
            hits += seen.has(object_at(i));
        }
        repeat_ = hits >= kSample / 4 * 3;
    }

    // Whether the first values repeat as objects.
    bool repeat() const { return repeat_; }

    // Whether all values are text or missing.
    bool are_texts() const {
        bool strange = false;
        for (int64_t i = 0; i < n_; ++i) {
            PyObject* const object = object_at(i);
            if (!(object && is_text(object))) [[unlikely]]
                strange |= !is_missing(object);
        }
        return !strange;
    }

    bool read(const int32_t* row, int64_t before, int64_t n, float* out) const override {
        return read_as(row, before, n, out);
    }
    bool read(const int32_t* row, int64_t before, int64_t n, double* out) const override {
        return read_as(row, before, n, out);
    }

  private:
    static constexpr int64_t kSample = 256, kAhead = 16, kAtOnce = 64;
    static constexpr int64_t kGroup = 16, kMostOthers = 8;

    // The codes of objects that were seen, by their address.
    struct Seen {
        static constexpr size_t kKept = 256;
        struct Kept {
            PyObject* object = nullptr;
            double code = 0;
        };
        Kept kept[kKept];

        Kept& of(PyObject* object) {
            return kept[reinterpret_cast<uintptr_t>(object) / 16 % kKept];
        }
        bool has(PyObject* object) { return std::exchange(of(object).object, object) == object; }
    };

    PyObject* object_at(int64_t i) const {
        PyObject* object;
        std::memcpy(&object, at_ + i * stride_, sizeof object);
        return object;
    }

    template <class Out>
    bool read_as(const int32_t* row, int64_t before, int64_t n, Out* out) const {
        if (row)
            return read_cells<false>(
                n, [=](int64_t k) { return before + row[k]; }, [=](int64_t k) { return row[k]; },
                out);
        return read_cells<true>(
            n, [=](int64_t k) { return before + k; }, [](int64_t k) { return k; }, out);
    }

    // Where values repeat as objects, as they do in text that pandas reads from CSV, an object that
    // was seen before is not looked at again. Otherwise each is read as text, and fetched from
    // memory some rows ahead.
    template <bool consecutive, class CellAt, class PlaceAt, class Out>
    bool read_cells(int64_t n, const CellAt& cell, const PlaceAt& place, Out* out) const {
        const TextCodes& texts = *texts_;
        bool refused = false;
        if (repeat_ && n >= kSample) {
            Seen seen;
            for (int64_t k = 0; k < n; ++k) {
                PyObject* const object = object_at(cell(k));
                auto& kept = seen.of(object);
                if (kept.object != object || !object) kept = {object, code_of(texts, object)};
                refused |= kept.code == kRefused;
                out[place(k)] = static_cast<Out>(kept.code);
            }
            return !refused;
        }
        const auto fetch = [&](int64_t k) {
            const auto* const ahead =
                reinterpret_cast<const char*>(object_at(cell(std::min(k + kAhead, n - 1))));
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + sizeof(PyASCIIObject));  // its characters
        };
        const ShortTexts* known = texts.short_texts();
        if (known && !texts.kernels().reads(Out()).spans) known = nullptr;
        bool in_groups = consecutive && known && known->in_groups && stride_ == sizeof(PyObject*);
        int64_t others = 0;  // groups in which an object is no such text
        for (int64_t begin = 0, end; begin < n; begin = end) {
            if (in_groups && n - begin >= kGroup) {
                begin += texts.kernels().reads(Out()).objects(*known, objects_from(cell(begin)),
                                                              n - begin, out + begin);
                if (begin == n) break;
                in_groups = ++others <= kMostOthers + begin / (4 * kGroup);
            }
            end = std::min(begin + (in_groups ? kGroup : kAtOnce), n);
            TextSpan spans[kAtOnce];
            bool plain = known != nullptr;
            for (int64_t k = begin; known && k < end; ++k) {
                fetch(k);
                PyObject* const object = object_at(cell(k));
                plain &= is_plain(object);
                spans[k - begin] = plain ? span_of(object) : TextSpan{nullptr, 0};
            }
            if (plain) {
                Out codes[kAtOnce];
                refused |= !texts.kernels().reads(Out()).spans(
                    *known, {.data = reinterpret_cast<const uint8_t*>(spans), .n = end - begin},
                    codes);
                for (int64_t k = begin; k < end; ++k) out[place(k)] = codes[k - begin];
                continue;
            }
            for (int64_t k = begin; k < end; ++k) {
                if (!known) fetch(k);
                const double code = code_of(texts, object_at(cell(k)));
                refused |= code == kRefused;
                out[place(k)] = static_cast<Out>(code);
            }
        }
        return !refused;
    }

    // The objects from one on, one after the other, as the kernel looks at them: texts as is_plain
    // tells them.
    TextObjects objects_from(int64_t i) const {
        constexpr auto kHeader = static_cast<int32_t>(offsetof(PyObject, ob_type));
        static_assert(kHeader + 32 <= static_cast<int32_t>(sizeof(PyASCIIObject)) &&
                      offsetof(PyASCIIObject, state) < kHeader + 32);
        PyASCIIObject plain{};
        plain.state.compact = 1, plain.state.ascii = 1;
        TextObjects objects{.object = reinterpret_cast<const uint8_t* const*>(at_) + i,
                            .header = kHeader,
                            .size = static_cast<int32_t>(offsetof(PyASCIIObject, length)),
                            .text = static_cast<int32_t>(sizeof(PyASCIIObject)),
                            .mask = {},
                            .kind = {}};
        std::memcpy(objects.kind, reinterpret_cast<const char*>(&plain) + kHeader, 32);
        std::copy_n(objects.kind, 4, objects.mask);
        objects.kind[0] = reinterpret_cast<uintptr_t>(&PyUnicode_Type),
        objects.mask[0] = ~uint64_t{0};
        return objects;
    }

    // A text whose characters follow its header, of more than eight bytes.
    static bool is_plain(PyObject* object) {
        return object && PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object);
    }
    static TextSpan span_of(PyObject* object) {
        return {reinterpret_cast<const char*>(reinterpret_cast<PyASCIIObject*>(object) + 1),
                static_cast<uint64_t>(PyUnicode_GET_LENGTH(object))};
    }

    [[gnu::always_inline]] static double code_of(const TextCodes& texts, PyObject* object) {
        if (is_plain(object)) [[likely]] {
            const TextSpan text = span_of(object);
            return texts.of_behind(text.begin, text.size);
        }
        return code_of_other(texts, object);
    }
    [[gnu::noinline]] static double code_of_other(const TextCodes& texts, PyObject* object) {
        if (is_missing(object)) return texts.null();
        return is_text(object) ? texts.of(utf8_of(object)) : kRefused;
    }

    const char* const at_;
    const int64_t stride_, n_;
    const std::shared_ptr<const TextCodes> texts_;
    bool repeat_ = false;
};

}  // namespace qwyc
