// Rows from callers: checked and, where needed, copied to a form that evaluators take.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "capi/errors.hpp"
#include "core/float_mode.hpp"
#include "core/rows_view.hpp"
#include "files/schema.hpp"

namespace qwyc::capi {

// What a model does with values of rows before base models see them, as src/qwyc/rows/matrix.py.
class RowRules {
  public:
    explicit RowRules(const files::Schema& schema)
        : schema_(schema),
          has_sentinel_(!std::isnan(schema.missing)),
          finite_only_(!schema.accepts_missing || !schema.accepts_infinity ||
                       !schema.must_have.empty()) {}

    // Whether a number means missing. Rows are converted to the type of the model first, then.
    bool has_sentinel() const { return has_sentinel_; }
    bool checks() const { return finite_only_; }

    // `row` are the numbers of one row with a stride, `index` is its number in messages.
    template <class In>
    void check(const In* row, int64_t stride, int64_t index) const {
        schema_.single ? check_as<float>(row, stride, index) : check_as<double>(row, stride, index);
    }

    // The number as base models take it.
    template <class Real, class In>
    Real converted(In x) const {
        const auto value = static_cast<Real>(x);
        return value == static_cast<Real>(schema_.missing) ? std::numeric_limits<Real>::quiet_NaN()
                                                           : value;
    }

  private:
    template <class Real, class In>
    void check_as(const In* row, int64_t stride, int64_t index) const {
        bool finite = true;
        for (int64_t j = 0; j < schema_.n_features; ++j)
            finite &=
                std::abs(static_cast<Real>(row[j * stride])) <= std::numeric_limits<Real>::max();
        if (finite) [[likely]]
            return;
        for (int64_t j = 0; j < schema_.n_features; ++j) {
            const auto x = static_cast<Real>(row[j * stride]);
            if (std::isnan(x) && !schema_.accepts_missing) refuse_missing(j, index);
            if (std::isnan(x) && std::find(schema_.must_have.begin(), schema_.must_have.end(), j) !=
                                     schema_.must_have.end())
                throw RowsError(where(index) + "a missing value in " + schema_.place(j) +
                                ", for which the model has no output: fill it in or drop the row");
            if (std::isinf(x) && !schema_.accepts_infinity)
                throw RowsError(
                    where(index) +
                    (schema_.single ? "infinity, or a number past float32, in " : "infinity in ") +
                    schema_.place(j) +
                    "; the source library refuses infinities with this model: fill "
                    "them in or drop the rows");
        }
    }
    [[noreturn]] void refuse_missing(int64_t j, int64_t index) const {
        const auto own = schema_.own_missing.find(j);
        if (own != schema_.own_missing.end())
            throw RowsError(where(index) + "a missing value in " + schema_.place(j) +
                            "; the model takes " + std::to_string(own->second) +
                            " for what is missing there: fill it in with that");
        throw RowsError(where(index) + "a missing value in " + schema_.place(j) +
                        "; the source library refuses missing values with this model: fill them "
                        "in or drop the rows");
    }
    static std::string where(int64_t index) { return "row " + std::to_string(index) + " has "; }

    const files::Schema& schema_;
    bool has_sentinel_, finite_only_;
};

// Whether rows that lie by column are finite as the model reads them. False where they lie
// otherwise: then they are looked at row by row.
template <class In>
bool by_column_finite(const RowsView<In>& rows, bool single) {
    if (rows.row_stride != 1) return false;
    const double most = single ? static_cast<double>(std::numeric_limits<float>::max())
                               : std::numeric_limits<double>::max();
    bool finite = true;
    for (int64_t j = 0; j < rows.width && finite; ++j) {
        const In* const column = rows.column(j);
        for (int64_t i = 0; i < rows.n; ++i)
            finite &= std::abs(static_cast<double>(column[i])) <= most;
    }
    return finite;
}

// Calls use(rows, begin) with parts of rows that evaluators take, until all were passed. `view` may
// have any strides; in messages its first row has the number `first`.
template <class In, class Use>
void with_readable(const RowsView<In>& view, const RowRules& rules, bool single, const Use& use,
                   int64_t first = 0) {
    const PlainFloats plain;
    if (rules.checks() && !rules.has_sentinel() && !by_column_finite(view, single))
        for (int64_t i = 0; i < view.n; ++i)
            rules.check(view.row(i), view.column_stride, first + i);
    const bool is_readable = (view.column_stride == 1 && view.row_stride > 0) ||
                             (view.row_stride == 1 && view.column_stride > 0);
    if (!rules.has_sentinel() && is_readable) return use(view, int64_t{0});
    constexpr int64_t kNumbers = 1 << 20;  // in a copy
    const int64_t width = view.width;
    const int64_t block =
        std::min(view.n, std::max<int64_t>(kNumbers / std::max<int64_t>(width, 1), 256));
    const auto in_blocks = [&]<class Out>(std::vector<Out> copy, const auto& convert) {
        copy.resize(static_cast<size_t>(block * width));
        for (int64_t begin = 0; begin < view.n; begin += block) {
            const int64_t n = std::min(block, view.n - begin);
            for (int64_t i = 0; i < n; ++i) {
                const In* const row = view.row(begin + i);
                for (int64_t j = 0; j < width; ++j)
                    copy[i * width + j] = convert(row[j * view.column_stride]);
                if (rules.checks() && rules.has_sentinel())
                    rules.check(static_cast<const Out*>(copy.data()) + i * width, 1,
                                first + begin + i);
            }
            use(RowsView<Out>{copy.data(), n, width, width, 1}, begin);
        }
    };
    if (!rules.has_sentinel())
        in_blocks(std::vector<In>(), [](In x) { return x; });
    else if (single)
        in_blocks(std::vector<float>(), [&](In x) { return rules.converted<float>(x); });
    else
        in_blocks(std::vector<double>(), [&](In x) { return rules.converted<double>(x); });
}

}  // namespace qwyc::capi
