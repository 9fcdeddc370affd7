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

constexpr size_t kSteps = 8;  // after so many steps, rows that are done are left out

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

template <class Source>
void PathCounter::add(const Source& source, double base, const double* full, int32_t n,
                      uint64_t* wrong) {
    constexpr bool kLeaves = std::is_same_v<Source, Leaves>;
    const TwoClasses target{tables_.threshold()};
    const size_t words = counts_.size();
    const int32_t places = kLeaves ? (n + 63) / 64 * 64 : n;
    const auto row_at = [&](int32_t place) {
        return kLeaves ? place / 64 * 64 + kernels_.row_of[place % 64] : place;
    };
    n_rows_ += n;
    for (size_t g = 0; g < words; ++g) {
        const PathTables::Group& group = tables_.groups()[g];
        std::fill_n(sum_, places, base);
        std::fill_n(boldest_, places, static_cast<uint8_t>(group.n - 1));
        std::fill_n(alive_, places, ~uint64_t{0} >> (kPathPolicies - group.n));
        std::fill_n(wrong_, places, uint64_t{0});
        for (int32_t i = 0; i < places; ++i) {
            const int32_t row = row_at(i);
            place_[i] = static_cast<uint16_t>(i);
            if (row >= n) sum_[i] = std::numeric_limits<double>::quiet_NaN();
            positive_[i] = row < n && target.decide(full[row]) ? ~uint64_t{0} : 0;
        }
        pad(places);
        follow(g, source, places);
        kernels_.tally(rows_, places, counts_[g].wrong.data());
        for (int32_t i = 0; wrong && i < places; ++i)
            if (const int32_t row = row_at(i); row < n) wrong[row * words + g] = wrong_[i];
    }
}

template <class Source>
void PathCounter::follow(size_t number, const Source& source, int32_t n) {
    const PathTables::Group& group = tables_.groups()[number];
    uint32_t* const stops = counts_[number].stops.data();
    int32_t n_policies = group.n;
    bool whole = true;
    for (size_t r = 0; r < group.steps.size() && n > 0; ++r) {
        const PathStep& step = group.steps[r];
        advance(source, step, tables_.order()[r], n_policies, whole, n);
        kernels_.settle(step, n_policies, found_, rows_, stops + r * kPathPolicies);
        if ((r + 1) % kSteps == 0) {
            int32_t boldest;
            n = kernels_.keep(rows_, n, boldest);
            n_policies = boldest + 1;
            whole = false;
            pad(n);
        }
    }
}

template <class Score>
void PathCounter::advance(const Scores<Score>& scores, const PathStep& step, int32_t tree,
                          int32_t n_policies, bool whole, int32_t n) {
    kernels_.advance<Score>()(step, n_policies, scores.values + tree * scores.stride, whole, n,
                              rows_, found_);
}

void PathCounter::advance(const Leaves& leaves, const PathStep& step, int32_t tree,
                          int32_t n_policies, bool whole, int32_t n) {
    PathLeaves here = leaves.trees[tree];
    here.number = leaves.number + int64_t{tree} * kPathRows;
    kernels_.advance_leaves(step, n_policies, here, whole, n, rows_, found_);
}

// What the kernels find past the rows.
void PathCounter::pad(int32_t n) {
    std::fill_n(sum_ + n, kMore, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(boldest_ + n, kMore, uint8_t{0});
    std::fill_n(place_ + n, kMore, uint16_t{0});
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
                             counter->add(PathCounter::Scores<Score>{values + i, stride}, base,
                                          full + i, here, wrong);
                             continue;
                         }
                         for (int32_t j = 0; j < here; ++j) some_full[j] = full[rows[i + j]];
                         for (int64_t t = 0; t < T; ++t)
                             for (int32_t j = 0; j < here; ++j)
                                 some[t * kPathRows + j] = values[t * stride + rows[i + j]];
                         counter->add(PathCounter::Scores<Score>{some.data(), kPathRows}, base,
                                      some_full, here, wrong);
                     }
                     const std::lock_guard lock(adding);
                     counter->add_to(out);
                 });
}

template void PathCounter::add(const Scores<float>&, double, const double*, int32_t, uint64_t*);
template void PathCounter::add(const Leaves&, double, const double*, int32_t, uint64_t*);
template void count_path(const PathView&, const float*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);
template void count_path(const PathView&, const double*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);

}  // namespace qwyc
