// A block of rows under a policy on leads that rules classes out, on one thread: after each segment
// rows are put in order by the classes that are left for them, and only these are evaluated.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/class_sets.hpp"
#include "core/lead_rows.hpp"

namespace qwyc {

template <class Real>
template <class In>
class LeadEngine<Real>::RulingWorker : LeadEngine<Real>::template Rows<In> {
    using Base = typename LeadEngine<Real>::template Rows<In>;
    using Base::K_, Base::engine_, Base::forest_, Base::kernels_, Base::mask_kernels_;
    using Base::leaf_, Base::row_, Base::stride_, Base::sums_, Base::walked_;

  public:
    RulingWorker(const LeadEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : Base(engine, kernels, masks) {
        for (int32_t k = 0; k < K_; ++k) all_ |= bit_of_class(k);
    }

    // Rows in blocks of `block`. Those that never quit are completed together.
    void run(const RowsView<In>& rows, int32_t block, const ClassDecisionsOut& out) {
        const auto n = static_cast<int32_t>(rows.n);
        this->make_room(n, block);
        slab_sums_ = scratch().value.of(static_cast<size_t>(kOwn) * K_);
        if (n >= kMinCoded && engine_.codes_rows(rows, mask_kernels_))
            lines_ = scratch().lines.of(64 * static_cast<size_t>(words_of(std::min(n, block))) *
                                        kCodeBytes);
        for (int32_t begin = 0; begin < n; begin += block)
            run_block(rows, begin, std::min(block, n - begin), out);
        this->complete(rows, out);
    }

  private:
    // From one class's sums of a slab to the next's.
    static constexpr int64_t kOwn = kSlab + 8;
    static constexpr int32_t kMinCoded = 512;  // rows for which codes are worth making

    // Rows keep their places in sums_; row_ has those that go on.
    void run_block(const RowsView<In>& rows, int32_t begin, int32_t n,
                   const ClassDecisionsOut& out) {
        this->begin_block(rows, begin, n);
        begin_ = begin;
        left_.begin_with(n, all_);
        for (const Segment& segment : engine_.ruling_) {
            const int32_t left = left_.size();
            if (left == 0) return;
            const int32_t* at = left_.sort();
            for (int32_t i = 0; i < left; ++i) row_[i] = begin + at[i];
            if (left <= segment.walk_below)
                return this->walk_on(segment.begin, at, left, rows, out);
            this->prepare(segment, rows, left);
            next_left_.clear(left);
            const bool consecutive = segment.begin == 0;  // with all classes
            for (int32_t i = 0, here; i < left; i += here) {
                ClassBits classes;
                here = left_.next(kSlab, classes);
                list_classes(classes);
                if (lines_ && consecutive) encode(rows.part(row_[i], row_[i] + here), at[i], here);
                add_segment(segment, classes, rows, consecutive, at + i, row_ + i, here,
                            left - i - here);
                test(segment.end - 1, at + i, here, out);
            }
            std::swap(left_, next_left_);
        }
        const int32_t left = left_.size();
        const int32_t* at = left_.sort();
        for (int32_t i = 0; i < left; ++i) row_[i] = begin + at[i];
        this->leave(left);
    }

    // Numbers the classes of a slab from 0.
    void list_classes(ClassBits classes) {
        classes_.clear();
        place_of_.assign(K_, -1);
        for (int32_t k = 0; k < K_; ++k)
            if (classes & bit_of_class(k)) {
                place_of_[k] = static_cast<int32_t>(classes_.size());
                classes_.push_back(k);
            }
    }

    // The sums of n <= kSlab rows after a segment: own_, by class of the slab. at: their places;
    // row: their numbers.
    void add_segment(const Segment& segment, ClassBits classes, const RowsView<In>& rows,
                     bool consecutive, const int32_t* at, const int32_t* row, int32_t n,
                     int32_t more) {
        const int32_t words = words_of(n);
        own_ = consecutive ? sums_ + at[0] : slab_sums_;
        own_stride_ = consecutive ? stride_ : kOwn;
        for (size_t c = 0; c < classes_.size() && !consecutive; ++c) {
            const double* const sums = sums_ + classes_[c] * stride_;
            double* const own = own_ + c * kOwn;
            for (int32_t i = 0; i < n; ++i) own[i] = sums[at[i]];
            std::fill_n(own + n, 64 * words - n, 0.0);
        }
        for (const ClassPart& part : segment.parts) {
            if (std::none_of(part.runs.begin(), part.runs.end(),
                             [&](const ClassRun& run) { return evaluates(run); }))
                continue;
            uint64_t* masks = nullptr;
            if (part.masked() && lines_) {
                masks = answer_coded(part, classes, at, n, more);
            } else if (part.masked()) {
                const SomeQuestions* const some = classes == all_ ? nullptr : ask(part, classes);
                masks =
                    consecutive
                        ? answer<In, Real>(mask_kernels_, part.trees, rows.part(row[0], row[0] + n),
                                           nullptr, n, more, some)
                        : answer<In, Real>(mask_kernels_, part.trees, rows, row, n, more, some);
            }
            ClassAdder adder(mask_kernels_, part, K_, false, masks, words);
            for (ClassRun run : part.runs) {
                if (!evaluates(run)) continue;
                run.index = place_of_[run.index];
                if (run.kind == ClassRun::Kind::kMasked) {
                    adder.add_alone(run, own_, own_stride_);
                    continue;
                }
                std::copy_n(row, n, walked_);
                double* const own = own_ + run.index * own_stride_;
                for (int32_t t = run.begin; t < run.end; ++t) {
                    this->walk_deep(part.walked[t], rows, n);
                    for (int32_t i = 0; i < n; ++i) own[i] += *forest_.step_of(leaf_[i]);
                }
            }
        }
    }
    bool evaluates(const ClassRun& run) const {
        return run.kind != ClassRun::Kind::kTest && place_of_[run.index] >= 0;
    }

    // Makes the codes of n <= kSlab rows, whose places in the block are `at` and those after it.
    void encode(const RowsView<In>& rows, int32_t at, int32_t n) {
        using V = TileValue<In, Real>;
        const size_t slots = engine_.codes_.questions.n_slots;
        auto* const tile = reinterpret_cast<V*>(scratch().tile.of(slots * 64 * sizeof(V)));
        mask_kernels_.template encode<In, V>()(engine_.codes_, rows, n, tile,
                                               lines_ + at * int64_t{kCodeBytes});
    }

    // The answers to the questions of a part that trees of some classes ask, from codes.
    uint64_t* answer_coded(const ClassPart& part, ClassBits classes, const int32_t* at, int32_t n,
                           int32_t more) {
        if (asked_part_ != &part || asked_classes_ != classes) {
            asked_.clear();
            for (int32_t q = 1; q < part.trees.first_set; ++q)
                if (part.asked_by[q] & classes) asked_.push_back(q);
            asked_part_ = &part, asked_classes_ = classes;
        }
        uint64_t* const masks =
            scratch().masks.of(static_cast<size_t>(part.trees.n_masks()) * kSlabWords);
        mask_kernels_.answer_coded(part.coded, asked_, lines_, at, n, more, masks);
        return masks;
    }

    // The questions of a part that trees of some classes ask.
    const SomeQuestions* ask(const ClassPart& part, ClassBits classes) {
        if (asked_part_ == &part && asked_classes_ == classes) return &some_;
        const MaskedTrees& trees = part.trees;
        asked_.resize(trees.missing);
        int32_t n = 0;
        const auto list = [&](int32_t begin, int32_t end) {
            for (int32_t q = begin; q < end; ++q) {
                asked_[n] = q;
                n += (part.asked_by[q] & classes) != 0;
            }
            return n;
        };
        some_.or_missing = list(1, trees.or_missing);
        some_.end = list(trees.or_missing, trees.missing);
        some_.number = asked_.data();
        asked_part_ = &part, asked_classes_ = classes;
        return &some_;
    }

    // Records the rows that quit after a step, and adds the others to next_left_ with the classes
    // that are left for them.
    void test(int32_t step, const int32_t* at, int32_t n, const ClassDecisionsOut& out) {
        const auto n_classes = static_cast<int32_t>(classes_.size());
        const int32_t words = words_of(n);
        uint64_t ahead[kSlabWords], alive[kSlabWords];
        kernels_.leads(own_, own_stride_, n_classes, words, engine_.least_[step], ahead);
        std::fill_n(alive, words, ~uint64_t{0});
        if (n % 64 != 0) alive[words - 1] = (uint64_t{1} << n % 64) - 1;
        for (int32_t w = 0; w < words; ++w)
            for (uint64_t bits = ahead[w] & alive[w]; bits != 0; bits &= bits - 1) {
                const int32_t i = 64 * w + std::countr_zero(bits);
                if (quits(step, i, at[i], out)) alive[w] ^= bits & -bits;
            }
        if (engine_.drop_[step] < kInf)
            kernels_.rule_out(own_, own_stride_, n_classes, words, engine_.drop_[step]);
        ClassBits left[kSlab] = {};
        for (int32_t c = 0; c < n_classes; ++c) {
            const double* const own = own_ + c * own_stride_;
            double* const sums = sums_ + classes_[c] * stride_;
            const ClassBits bit = bit_of_class(classes_[c]);
            for (int32_t i = 0; i < n; ++i) left[i] |= own[i] > -kInf ? bit : 0;
            if (own_ != slab_sums_) continue;  // sums_ itself
            for (int32_t i = 0; i < n; ++i) sums[at[i]] = own[i];
        }
        for (int32_t w = 0; w < words; ++w)
            for (uint64_t bits = alive[w]; bits != 0; bits &= bits - 1) {
                const int32_t i = 64 * w + std::countr_zero(bits);
                next_left_.add(at[i], left[i]);
            }
    }

    // Whether row i of a slab, whose lead exceeds that of some class, quits; it is then recorded.
    bool quits(int32_t step, int32_t i, int32_t at, const ClassDecisionsOut& out) const {
        const auto n_classes = static_cast<int32_t>(classes_.size());
        const double* const sums = own_ + i;
        int32_t best = 0;
        for (int32_t c = 1; c < n_classes; ++c)
            if (sums[c * own_stride_] > sums[best * own_stride_]) best = c;
        const int32_t index = classes_[best];
        if (engine_.lead_of(step, index) > engine_.least_[step]) {
            double second = -kInf;
            for (int32_t c = 0; c < n_classes; ++c)
                if (c != best) second = std::max(second, sums[c * own_stride_]);
            if (!(sums[best * own_stride_] - second > engine_.lead_of(step, index))) return false;
        }
        const int64_t row = begin_ + at;
        out.label[row] = index;
        if (out.steps) out.steps[row] = step + 1;
        if (out.score) {
            std::fill_n(out.score + row * K_, K_, -kInf);
            for (int32_t c = 0; c < n_classes; ++c)
                out.score[row * K_ + classes_[c]] = sums[c * own_stride_];
        }
        return true;
    }

    ClassBits all_ = 0;
    int32_t begin_;                   // of the block
    RowsByClasses left_, next_left_;  // rows that go on
    std::vector<int32_t> classes_;    // of a slab
    std::vector<int32_t> place_of_;   // of each class among them, or -1
    double* slab_sums_;               // (K, kOwn)
    uint8_t* lines_ = nullptr;        // codes of the rows of the block, if they are used
    double* own_;                     // sums of a slab, (classes, own_stride_)
    int64_t own_stride_;
    const ClassPart* asked_part_ = nullptr;
    ClassBits asked_classes_ = 0;
    std::vector<int32_t> asked_;  // questions
    SomeQuestions some_{};
};

}  // namespace qwyc
