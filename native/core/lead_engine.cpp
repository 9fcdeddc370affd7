#include <limits>
#include <utility>

#include "core/class_engine.hpp"
#include "core/full_sums_worker.hpp"
#include "core/lead_worker.hpp"
#include "core/parallel.hpp"
#include "core/row_leaves.hpp"
#include "core/ruling_worker.hpp"

namespace qwyc {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;  // of rows, and of running sums
constexpr int64_t kCodedBytes = 8 << 20;  // of codes and running sums
constexpr int64_t kMaxBlockRows = 16384;
constexpr int64_t kRowsAtOnce = 65536;  // that one thread takes

// But of still fewer rows than kFewToRuleOut, most are soon walked one by one, for the classes that
// are left.
constexpr int64_t kWalkedSoon = 24;

// Full sums take the place of running sums for up to so many rows. Of up to so few, only if these
// are not expected to be walked soon.
constexpr int64_t kMostRowsForFullSums = 4096, kFewForFullSums = 64;

}  // namespace

template <class Real>
LeadEngine<Real>::LeadEngine(const ClassEngine<Real>& full, const LeadPolicyView& policy,
                             std::span<const double> survival)
    : full_(full),
      forest_(full.forest()),
      order_(policy.order.begin(), policy.order.end()),
      lead_(policy.lead.begin(), policy.lead.end()),
      only_(policy.only) {
    const auto n_steps = static_cast<int32_t>(order_.size());
    const int32_t K = forest_.n_classes();
    for (int32_t r = 0; r < n_steps; ++r) {
        const double* const of_step = lead_.data() + r * int64_t{K};
        least_.push_back(r + 1 < n_steps ? *std::min_element(of_step, of_step + K) : kInf);
    }
    quit_end_ = n_steps;
    while (quit_end_ > 0 && least_[quit_end_ - 1] == kInf) --quit_end_;
    drop_.assign(n_steps, kInf);
    if (!policy.drop.empty()) std::copy_n(policy.drop.begin(), quit_end_, drop_.begin());
    rules_out_ = !forest_.has_vectors() &&
                 std::any_of(drop_.begin(), drop_.end(), [](double drop) { return drop < kInf; });
    tree_begin_.push_back(0);
    for (int32_t r = 0; r < quit_end_; ++r) {
        for (int32_t t = forest_.step_begin(order_[r]); t < forest_.step_end(order_[r]); ++t)
            trees_.push_back(t);
        tree_begin_.push_back(static_cast<int32_t>(trees_.size()));
    }
    std::vector<double> reached(n_steps + 1);
    for (int32_t r = 0; r < n_steps; ++r) {  // a typical curve, where none is known
        reached[r] = survival.empty() ? 1.0 / (1.0 + static_cast<double>(r) / 6) : survival[r];
        if (r > 0) reached[r] = std::min(reached[r], reached[r - 1]);
    }
    first_drop_ = static_cast<int32_t>(
        std::find_if(drop_.begin(), drop_.end(), [](double drop) { return drop < kInf; }) -
        drop_.begin());
    bound_errors();
    divide(reached);
    if (rules_out_) divide_at_tests(reached);
    if (quit_end_ < n_steps) expected_cost_ += reached[quit_end_] * full.expected_cost();
}
template <class Real>
template <class V>
int32_t LeadEngine<Real>::walk_row(const RowLeaves<Real, V>& leaves, int32_t& step,
                                   double* sums) const {
    if (rules_out_) return walk_some_classes(leaves, step, sums);
    constexpr int32_t kAtOnce = 8 * kWalksAtOnce;
    const int32_t channels = forest_.channels();
    int32_t leaf[kAtOnce];
    while (step < quit_end_) {
        const int32_t begin = tree_begin_[step];
        while (!tests(step)) ++step;  // the last of them is tested
        const int32_t end = tree_begin_[++step];
        for (int32_t at = begin; at < end; at += kAtOnce) {
            const int32_t n = std::min(kAtOnce, end - at);
            leaves(&trees_[at], n, leaf);
            for (int32_t i = 0; i < n; ++i) {
                const float* const added = forest_.step_of(leaf[i]);
                double* const to = sums + forest_.class_of(trees_[at + i]);
                for (int32_t c = 0; c < channels; ++c) to[c] += added[c];
            }
        }
        const int32_t index = outcome(step - 1, sums);
        if (index >= 0) return index;
    }
    return -1;
}

template <class Real>
template <class V>
int32_t LeadEngine<Real>::walk_some_classes(const RowLeaves<Real, V>& leaves, int32_t& step,
                                            double* sums) const {
    const int32_t K = forest_.n_classes();
    for (const Segment& segment : ruling_) {
        if (segment.begin < step) continue;
        int32_t* const tree = scratch().trees.of(segment.trees.size());
        int32_t* const leaf = scratch().leaf.of(segment.trees.size() + kWalksAtOnce);
        const auto n_trees = [&](int32_t k) {
            return sums[k] > -kInf ? segment.tree_begin[k + 1] - segment.tree_begin[k] : 0;
        };
        int32_t n = 0;
        for (int32_t k = 0; k < K; ++k) {
            std::copy_n(segment.trees.begin() + segment.tree_begin[k], n_trees(k), tree + n);
            n += n_trees(k);
        }
        leaves(tree, n, leaf);
        const int32_t* at = leaf;
        for (int32_t k = 0; k < K; ++k) {
            const int32_t* const end = at + n_trees(k);
            double sum = sums[k];
            for (; at < end; ++at) sum += *forest_.step_of(*at);
            sums[k] = sum;
        }
        step = segment.end;
        const int32_t index = outcome(step - 1, sums);
        if (index >= 0) return index;
    }
    return -1;
}

template <class Real>
template <class In>
int32_t LeadEngine<Real>::decide_one(const In* row, int32_t* steps, double* score) const {
    const int64_t width = forest_.n_features();
    const RowsView<In> rows{row, 1, width, width, 1};
    const int32_t K = forest_.n_classes();
    double* const sums = scratch().sums.of(K);
    std::copy_n(forest_.base(), K, sums);
    int32_t step = 0, index;
    if (full_.coded_kernels())
        index = walk_row(RowLeaves<Real, In>(full_, row), step, sums);
    else
        index = with_values<Real>(
            full_.row_trees(), rows, nullptr, 1, [&]<class V>(const V* const* values) {
                return walk_row(RowLeaves<Real, V>(full_, values[0]), step, sums);
            });
    if (index < 0) {
        full_.score_few(rows, nullptr, 1, sums);
        index = forest_.ties().decide(sums, K);
        step = static_cast<int32_t>(order_.size());
    }
    if (steps) *steps = step;
    if (score) std::copy_n(sums, K, score);
    return index;
}

template <class Real>
bool LeadEngine<Real>::takes_full_sums(int64_t n) const {
    if (errors_.empty() || n > kMostRowsForFullSums) return false;
    const Plan& plan = plan_for(n);
    if (plan.last < 0) return false;
    if (n > kFewForFullSums) return true;
    // Rows of codes are walked for fewer classes than is expected.
    const double fewer = full_.coded_kernels() ? 1.1 : 1;
    return static_cast<double>(n) * plan.reach_last >
           fewer * segments_[plan.segments.back()].walk_below;
}

template <class Real>
template <class In>
void LeadEngine<Real>::decide(const RowsView<In>& rows, const ClassDecisionsOut& out, int threads,
                              std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    const int64_t K = forest_.n_classes();
    const int64_t width = std::max<int64_t>(rows.width, 1);
    const int64_t bytes = std::max<int64_t>(width * static_cast<int64_t>(sizeof(In)), 8 * K);
    // Of more rows, more have the same classes left, so that slabs are full.
    const int64_t block_bytes = rules_out_ ? 4 * kBlockBytes : kBlockBytes;
    const int64_t block =
        codes_rows(rows, masks)
            ? std::clamp<int64_t>(kCodedBytes / (kCodeBytes + 8 * K) / kSlab * kSlab, kSlab,
                                  kRowsAtOnce)
            : std::clamp<int64_t>(block_bytes / bytes / kSlab * kSlab, kSlab, kMaxBlockRows);
    const int64_t share = (rows.n / std::max(threads, 1) / kSlab + 1) * kSlab;  // rows per thread
    const int64_t at_once = std::min({share, kRowsAtOnce, max_rows_in_int32(rows.row_stride)});
    const int64_t few = full_.coded_kernels() ? kWalkedSoon : kMostWalked;
    parallel_for(rows.n, at_once, threads, [&](int64_t begin, int64_t end) {
        const ClassDecisionsOut here{out.label + begin, out.steps ? out.steps + begin : nullptr,
                                     out.score ? out.score + begin * K : nullptr};
        const auto some = rows.part(begin, end);
        const int64_t n = end - begin;
        if (out.score == nullptr && takes_full_sums(n))
            FullSumsWorker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
        else if (rules_out_ && (n > kFewToRuleOut || n <= few))
            RulingWorker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
        else
            Worker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
    });
}

#define QWYC_INSTANTIATE(Real, In)                                                             \
    template void LeadEngine<Real>::decide(const RowsView<In>&, const ClassDecisionsOut&, int, \
                                           std::string_view) const;                            \
    template int32_t LeadEngine<Real>::decide_one(const In*, int32_t*, double*) const;
template class LeadEngine<float>;
template class LeadEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
