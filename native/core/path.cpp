#include "core/path.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>

#include "core/parallel.hpp"
#include "core/rule.hpp"
#include "core/target.hpp"

namespace qwyc {

namespace {

constexpr size_t kSteps = 8;  // after so many steps, rows that are done are left out

constexpr size_t kFirstSteps = 64;  // for which rows are followed in their first slab
constexpr int64_t kNoRow = -1;

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
            for (int32_t k = 0; k < kPathBits; ++k) {
                step.low[k] = static_cast<float>(highest);
                step.high[k] = static_cast<float>(least);
                const double lower = k < n ? path.lower[(first + k) * T + r] : -kInf;
                const double upper = k < n ? path.upper[(first + k) * T + r] : kInf;
                step.threshold[0][k] = lower, step.threshold[1][k] = -upper;
                highest = std::max(highest, lower), least = std::min(least, upper);
            }
            // A row whose policies do not quit any more is never found, whatever its sum.
            step.low[0] = step.high[0] = std::numeric_limits<float>::quiet_NaN();
            step.later = later;
            later |= here[r];
        }
        groups_.push_back(std::move(group));
    }
}

PathCounter::PathCounter(const PathTables& tables, const PathKernels& kernels, uint64_t* wrong)
    : tables_(tables), kernels_(kernels), wrong_(wrong), counts_(tables.groups().size()) {
    for (size_t g = 0; g < counts_.size(); ++g) {
        const size_t n_steps = tables.groups()[g].steps.size();
        counts_[g].stops.resize(n_steps * kPathBits);
        auto& slabs = slabs_.emplace_back();
        for (size_t begin = 0, end = kFirstSteps; begin < n_steps || begin == 0;
             begin = end, end *= 4) {
            slabs.push_back(std::make_unique<Slab>());
            slabs.back()->begin = begin;
            slabs.back()->end = std::min(end, n_steps);
        }
    }
}

template <class Source>
void PathCounter::add(const Source& source, double base, const double* full, int64_t first,
                      int32_t n) {
    constexpr bool kLeaves = std::is_same_v<Source, Leaves>;
    const TwoClasses target{tables_.threshold()};
    const int32_t places = kLeaves ? (n + 63) / 64 * 64 : n;
    if constexpr (kLeaves) trees_ = source.trees;
    n_rows_ += n;
    for (size_t g = 0; g < counts_.size(); ++g) {
        const PathTables::Group& group = tables_.groups()[g];
        Slab& slab = *slabs_[g].front();
        slab.n = places;
        if constexpr (!kLeaves) slab.end = group.steps.size();
        std::fill_n(slab.sum, places, base);
        const uint64_t alive = (uint64_t{1} << group.n) - 1;
        for (int32_t i = 0; i < places; ++i) {
            const int32_t row = kLeaves ? i / 64 * 64 + kernels_.row_of[i % 64] : i;
            const bool is_row = row < n;
            const bool positive = is_row && target.decide(full[row]);
            slab.bound[i] = is_row ? static_cast<uint8_t>(group.n) : 0;
            slab.state[i] = {alive, 0, positive ? ~uint64_t{0} : 0, is_row ? first + row : kNoRow};
        }
        follow(g, 0, source);
    }
}

template <class Source>
void PathCounter::follow(size_t number, size_t level, const Source& source) {
    const PathTables::Group& group = tables_.groups()[number];
    uint32_t* const stops = counts_[number].stops.data();
    Slab& slab = *slabs_[number][level];
    copied_ = level == 0 ? nullptr : &slab;
    start(slab);
    bool whole = true;
    for (size_t r = slab.begin; r < slab.end && n_ > 0; ++r) {
        const PathStep& step = group.steps[r];
        advance(source, r, step, whole);
        kernels_.settle(step, most_, found_, rows_, stops + r * kPathBits);
        if ((r + 1) % kSteps == 0 || r + 1 == slab.end) {
            keep();
            whole = false;
        }
    }
    if constexpr (std::is_same_v<Source, Leaves>)
        if (n_ > 0 && slab.end < group.steps.size()) hand_on(number, level, source);
    finish(number, slab);
}

// Copies the rows that go on to the next slab. That is followed first if they would be too many.
void PathCounter::hand_on(size_t group, size_t level, const Leaves& leaves) {
    Slab& slab = *slabs_[group][level];
    Slab& next = *slabs_[group][level + 1];
    if (next.n + n_ > kPathRows) {
        const std::vector<double> sum(sum_, sum_ + n_);
        const std::vector<uint8_t> bound(bound_, bound_ + n_);
        const std::vector<uint16_t> place(place_, place_ + n_);
        follow(group, level + 1, leaves);
        n_ = static_cast<int32_t>(sum.size());
        std::copy(sum.begin(), sum.end(), sum_);
        std::copy(bound.begin(), bound.end(), bound_);
        std::copy(place.begin(), place.end(), place_);
        pad();
        copied_ = level == 0 ? nullptr : &slab;
    }
    for (int32_t i = 0; i < n_; ++i) {
        PathPlace& from = slab.state[place_[i]];
        const int32_t to = next.n + i;
        next.sum[to] = sum_[i], next.bound[to] = bound_[i], next.state[to] = from;
        from.row = kNoRow, from.wrong = 0;
    }
    const size_t n_steps = tables_.groups()[group].steps.size();
    constexpr int64_t kStride = kPathRows + kMore;
    columns_.clear();
    for (size_t r = next.begin; r < n_steps; ++r) columns_.push_back(number_at(leaves, r));
    kernels_.pick(columns_.data(), columns_.size(), place_, n_,
                  next.number.of(columns_.size() * kStride) + next.n, kStride);
    next.n += n_;
}

void PathCounter::start(Slab& slab) {
    rows_.state = slab.state;
    n_ = slab.n;
    std::copy_n(slab.sum, n_, sum_);
    std::copy_n(slab.bound, n_, bound_);
    for (int32_t i = 0; i < n_; ++i) place_[i] = static_cast<uint16_t>(i);
    pad();
    most_ = n_ == 0 ? 0 : *std::max_element(bound_, bound_ + n_);
}

// Keeps what was decided of the rows that are still here.
void PathCounter::finish(size_t group, Slab& slab) {
    kernels_.tally(slab.state, slab.n, counts_[group].wrong.data());
    const auto words = static_cast<int64_t>(counts_.size());
    for (int32_t i = 0; wrong_ && i < slab.n; ++i)
        if (const PathPlace& state = slab.state[i]; state.row != kNoRow)
            wrong_[state.row * words + group] = state.wrong;
    slab.n = 0;
}

template <class Score>
void PathCounter::advance(const Scores<Score>& scores, size_t step, const PathStep& bounds,
                          bool whole) {
    kernels_.advance<Score>()(bounds, most_, scores.values + tables_.order()[step] * scores.stride,
                              whole, n_, rows_, found_);
}

void PathCounter::advance(const Leaves& leaves, size_t step, const PathStep& bounds, bool whole) {
    PathLeaves here = leaves.trees[tables_.order()[step]];
    here.number = number_at(leaves, step);
    kernels_.advance_leaves(bounds, most_, here, whole, n_, rows_, found_);
}

const uint8_t* PathCounter::number_at(const Leaves& leaves, size_t step) const {
    if (copied_) return copied_->number.data() + (step - copied_->begin) * (kPathRows + kMore);
    return leaves.number + int64_t{tables_.order()[step]} * kPathRows;
}

// Leaves out rows that are done.
void PathCounter::keep() {
    n_ = kernels_.keep(rows_, n_, most_);
    pad();
}

// What the kernels find past the rows.
void PathCounter::pad() {
    std::fill_n(sum_ + n_, kMore, 0.0);
    std::fill_n(bound_ + n_, kMore, uint8_t{0});
    std::fill_n(place_ + n_, kMore, uint16_t{0});
}

void PathCounter::add_to(const PathCountsOut& out) {
    for (size_t g = 0; g < counts_.size(); ++g)
        for (size_t level = 1; level < slabs_[g].size(); ++level)
            if (slabs_[g][level]->n > 0) follow(g, level, Leaves{nullptr, trees_});
    const int64_t T = tables_.n_steps();
    for (size_t g = 0; g < counts_.size(); ++g) {
        const PathTables::Group& group = tables_.groups()[g];
        for (int32_t i = 0; i < group.n; ++i) {
            int64_t* const stops = out.stops + (group.first + i) * T;
            int64_t quit = 0;
            for (size_t r = 0; r < group.steps.size(); ++r) {
                const uint32_t here = counts_[g].stops[r * kPathBits + i];
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
    const int64_t T = tables.n_steps();
    const int64_t share = n / std::max(threads, 1) / kPathRows * kPathRows;  // rows per thread
    std::mutex adding;
    parallel_for(n, std::clamp<int64_t>(share, kPathRows, kPathChunk), threads,
                 [&](int64_t begin, int64_t end) {
                     PathCounter counter(tables, kernels, out.wrong);
                     std::vector<Score> some(rows ? T * kPathRows : 0);
                     double some_full[kPathRows];
                     for (int64_t i = begin; i < end; i += kPathRows) {
                         const auto here =
                             static_cast<int32_t>(std::min<int64_t>(kPathRows, end - i));
                         if (!rows) {
                             counter.add(PathCounter::Scores<Score>{values + i, stride}, base,
                                         full + i, i, here);
                             continue;
                         }
                         for (int32_t j = 0; j < here; ++j) some_full[j] = full[rows[i + j]];
                         for (int64_t t = 0; t < T; ++t)
                             for (int32_t j = 0; j < here; ++j)
                                 some[t * kPathRows + j] = values[t * stride + rows[i + j]];
                         counter.add(PathCounter::Scores<Score>{some.data(), kPathRows}, base,
                                     some_full, i, here);
                     }
                     const std::lock_guard lock(adding);
                     counter.add_to(out);
                 });
}

template void PathCounter::add(const Scores<float>&, double, const double*, int64_t, int32_t);
template void PathCounter::add(const Leaves&, double, const double*, int64_t, int32_t);
template void count_path(const PathView&, const float*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);
template void count_path(const PathView&, const double*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int, std::string_view);

}  // namespace qwyc
