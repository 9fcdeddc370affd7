// A few rows, decided without releasing Python's lock unless they take long: another thread may
// keep the lock for milliseconds once it has it.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/float_mode.hpp"
#include "python/engines.hpp"

namespace qwyc {

// A contiguous copy of a row; on the stack where the row is short.
template <class In>
class RowCopy {
  public:
    explicit RowCopy(int64_t n) {
        if (n > kShort) long_.resize(n);
    }
    In* data() { return long_.empty() ? short_ : long_.data(); }
    In& operator[](int64_t j) { return data()[j]; }

  private:
    static constexpr int64_t kShort = 128;
    In short_[kShort];
    std::vector<In> long_;
};

// Python's lock, which is released once, where something takes long.
using LateRelease = std::optional<nb::gil_scoped_release>;

// Steps that take less time than releasing the lock would.
inline constexpr int32_t kStepsUnderLock = 32;

template <class Real, class In>
void decide_one(const QuitEngine<Real>& engine, const In* row, const DecisionsOut& out,
                LateRelease& release) {
    auto state = engine.start_one();
    if (engine.walk_some(state, row, kStepsUnderLock, out)) return;
    if (!release) release.emplace();
    engine.walk_on(state, row, out);
}
template <class Real, class In>
void decide_one(const LatticeEngine<Real>& engine, const In* row, const DecisionsOut& out,
                LateRelease& release) {
    if (!engine.is_short() && !release) release.emplace();
    engine.decide_one(row, out);
}

// Whether numbers are finite as a model of this type reads them: a double may be too large for its
// float.
template <class Value, class In>
bool all_finite(const In* values, int64_t n) {
    bool finite = true;
    for (int64_t j = 0; j < n; ++j)
        finite &= std::abs(static_cast<Value>(values[j])) <= std::numeric_limits<Value>::max();
    return finite;
}
template <class Value, class In>
bool all_finite(const RowsView<In>& rows) {  // one of its strides is 1
    bool finite = true;
    if (rows.column_stride == 1)
        for (int64_t i = 0; i < rows.n && finite; ++i)
            finite = all_finite<Value>(rows.row(i), rows.width);
    else
        for (int64_t j = 0; j < rows.width && finite; ++j)
            finite = all_finite<Value>(rows.column(j), rows.n);
    return finite;
}

}  // namespace qwyc
