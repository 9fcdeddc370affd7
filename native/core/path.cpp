#include "core/path.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "core/parallel.hpp"
#include "core/rule.hpp"
#include "core/target.hpp"

namespace qwyc {

namespace {

constexpr size_t kSteps = 8;  // after so many steps, rows that are done may be left out

constexpr float kFloatInf = std::numeric_limits<float>::infinity();

// The least float that is no less, and the largest that is no more.
float rounded_up(double x) {
    const auto rounded = static_cast<float>(x);
    return rounded < x ? std::nextafter(rounded, kFloatInf) : rounded;
}
float rounded_down(double x) {
    return -rounded_up(-x);
}

}  // namespace

PathTables::PathTables(const PathView& path) : order_(path.order), threshold_(path.threshold) {
    const int64_t T = n_steps();
    for (int64_t first = 0; first < path.n_policies; first += kPathPolicies) {
        const auto n =
            static_cast<int32_t>(std::min<int64_t>(kPathPolicies, path.n_policies - first));
        Group group{first, n, {}};
        // The last step has no rule: the full score decides there.
        std::vector<uint64_t> here(T, 0);  // policies that may quit after each step
        for (int64_t r = 0; r + 1 < T; ++r)
            for (int32_t k = 0; k < n; ++k) {
                const int64_t at = (first + k) * T + r;
                const bool may = path.lower[at] > -kInf || path.upper[at] < kInf;
                here[r] |= uint64_t{may} << k;
            }
        int64_t end = T;
        while (end > 0 && here[end - 1] == 0) --end;
        group.steps.resize(end);
        uint64_t later = 0;
        for (int64_t r = end - 1; r >= 0; --r) {
            PathStep& step = group.steps[r];
            double highest = -kInf, least = kInf;
            for (int32_t k = 0; k < kPathPolicies; ++k) {
                step.lower[k] = k < n ? path.lower[(first + k) * T + r] : -kInf;
                step.minus_upper[k] = k < n ? -path.upper[(first + k) * T + r] : -kInf;
                highest = std::max(highest, step.lower[k]);
                least = std::min(least, -step.minus_upper[k]);
                step.low[k] = rounded_up(highest);
                step.high[k] = rounded_down(least);
            }
            step.split = highest;
            step.separate = highest <= least;
            step.later = later;
            later |= here[r];
        }
        groups_.push_back(std::move(group));
    }
}

PathCounter::PathCounter(const PathTables& tables, const PathKernels& kernels)
    : tables_(tables), kernels_(kernels), counts_(tables.groups().size()) {
    for (size_t g = 0; g < counts_.size(); ++g)
        counts_[g].stops.resize(tables.groups()[g].steps.size() * kPathPolicies);
}

template <class Score>
void PathCounter::add(const Score* values, int64_t stride, double base, const double* full,
                      int32_t n, uint64_t* wrong) {
    const TwoClasses target{tables_.threshold()};
    n_rows_ += n;
    for (size_t g = 0; g < counts_.size(); ++g) {
        const PathTables::Group& group = tables_.groups()[g];
        const uint64_t all = ~uint64_t{0} >> (kPathPolicies - group.n);
        std::fill_n(sum_, n, base);
        std::fill_n(boldest_, n, static_cast<uint8_t>(group.n - 1));
        for (int32_t i = 0; i < n; ++i) row_[i] = {all, 0, i, target.decide(full[i]) != 0};
        pad(n);
        n_wrong_ = {};
        out_ = wrong ? wrong + g : nullptr;
        follow(g, values, stride, n);
        for (size_t p = 0; p < 2; ++p)
            kernels_.tally(wrong_[p].data(), n_wrong_[p], counts_[g].wrong[p].data());
    }
}

template <class Score>
void PathCounter::follow(size_t number, const Score* values, int64_t stride, int32_t n) {
    const PathTables::Group& group = tables_.groups()[number];
    uint32_t* const stops = counts_[number].stops.data();
    int32_t n_policies = group.n;
    bool packed = false;
    for (size_t r = 0; r < group.steps.size() && n > 0; ++r) {
        const Score* const from = packed ? column<Score>(r) : values + tables_.order()[r] * stride;
        const PathStep& step = group.steps[r];
        const int32_t n_found = kernels_.advance<Score>()(step, n_policies, from, n, rows_, found_);
        kernels_.settle(step, n_policies, found_, n_found, rows_, stops + r * kPathPolicies);
        if ((r + 1) % kSteps == 0) {
            n = keep(group, r + 1, values, stride, n, packed);
            n_policies = n == 0 ? 0 : *std::max_element(boldest_, boldest_ + n) + 1;
        }
    }
    for (int32_t i = 0; i < n; ++i) finish(row_[i]);
}

// Leaves out rows that are done, if they are many. Returns how many rows are left.
template <class Score>
int32_t PathCounter::keep(const PathTables::Group& group, size_t step, const Score* values,
                          int64_t stride, int32_t n, bool& packed) {
    uint64_t keep[kPathRows / 64] = {};
    int32_t left = 0;
    for (int32_t i = 0; i < n; ++i) {
        const bool goes_on = sum_[i] == sum_[i];
        keep[i / 64] |= uint64_t{goes_on} << i % 64;
        left += goes_on;
    }
    if (4 * left > 3 * n) return n;
    packed_.of(group.steps.size() * (kPathRows + kMore) * sizeof(Score));
    for (size_t r = step; left > 0 && r < group.steps.size(); ++r) {
        Score* const to = column<Score>(r);
        kernels_.compact<Score>()(keep, n, packed ? to : values + tables_.order()[r] * stride, to);
    }
    packed = true;
    left = 0;
    for (int32_t i = 0; i < n; ++i) {
        if (sum_[i] == sum_[i]) {
            sum_[left] = sum_[i], boldest_[left] = boldest_[i], row_[left] = row_[i];
            ++left;
        } else {
            finish(row_[i]);
        }
    }
    pad(left);
    return left;
}

// Keeps what a row's policies did, which are decided in full where they have not quit.
void PathCounter::finish(const PathRow& row) {
    if (out_) out_[row.row * static_cast<int64_t>(counts_.size())] = row.wrong;
    if (row.wrong != 0) wrong_[row.positive][n_wrong_[row.positive]++] = row.wrong;
}

// What the kernels find past the rows.
void PathCounter::pad(int32_t n) {
    std::fill_n(sum_ + n, kMore, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(boldest_ + n, kMore, uint8_t{0});
}

void PathCounter::add_to(const PathCountsOut& out) const {
    const int64_t T = tables_.n_steps();
    for (size_t g = 0; g < counts_.size(); ++g) {
        const PathTables::Group& group = tables_.groups()[g];
        for (int32_t i = 0; i < group.n; ++i) {
            int64_t* const stops = out.stops + (group.first + i) * T;
            int64_t quit = 0;
            for (size_t r = 0; r < group.steps.size(); ++r) {
                const uint32_t here = counts_[g].stops[r * kPathPolicies + i];
                stops[r] += here, quit += here;
            }
            stops[T - 1] += n_rows_ - quit;
            int64_t* const differences = out.differences + (group.first + i) * 2;
            differences[0] += counts_[g].wrong[1][i];
            differences[1] += counts_[g].wrong[0][i];
        }
    }
}

template <class Score>
void count_path(const PathView& path, const Score* values, double base, const double* full,
                int64_t stride, const int64_t* rows, int64_t n, const PathCountsOut& out,
                int threads, std::string_view isa) {
    const PathTables tables(path);
    const PathKernels& kernels = path_kernels(isa);
    const int64_t T = tables.n_steps(), words = path_words(path.n_policies);
    const int64_t share = n / std::max(threads, 1) / kPathRows * kPathRows;  // rows per thread
    std::mutex adding;
    parallel_for(n, std::clamp<int64_t>(share, kPathRows, kPathChunk), threads,
                 [&](int64_t begin, int64_t end) {
                     const auto counter = std::make_unique<PathCounter>(tables, kernels);
                     std::vector<Score> some(rows ? T * kPathRows : 0);
                     double some_full[kPathRows];
                     for (int64_t i = begin; i < end; i += kPathRows) {
                         const auto here =
                             static_cast<int32_t>(std::min<int64_t>(kPathRows, end - i));
                         uint64_t* const wrong = out.wrong ? out.wrong + i * words : nullptr;
                         if (!rows) {
                             counter->add(values + i, stride, base, full + i, here, wrong);
                             continue;
                         }
                         for (int32_t j = 0; j < here; ++j) some_full[j] = full[rows[i + j]];
                         for (int64_t t = 0; t < T; ++t)
                             for (int32_t j = 0; j < here; ++j)
                                 some[t * kPathRows + j] = values[t * stride + rows[i + j]];
                         counter->add(some.data(), kPathRows, base, some_full, here, wrong);
                     }
                     const std::lock_guard lock(adding);
                     counter->add_to(out);
                 });
}

template void PathCounter::add(const float*, int64_t, double, const double*, int32_t, uint64_t*);
template void PathCounter::add(const double*, int64_t, double, const double*, int32_t, uint64_t*);
template void count_path(const PathView&, const float*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);
template void count_path(const PathView&, const double*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);

}  // namespace qwyc
