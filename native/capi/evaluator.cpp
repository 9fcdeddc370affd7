#include "capi/evaluator.hpp"

#include <numeric>
#include <vector>

#include "capi/scratch.hpp"
#include "core/class_engine.hpp"
#include "core/combinations.hpp"
#include "core/engine.hpp"
#include "core/float_mode.hpp"
#include "core/lattice_engine.hpp"

namespace qwyc::capi {

namespace {

using files::Container;
using files::FileParts;

// A policy, or one that never quits.
class Thresholds {
  public:
    explicit Thresholds(const FileParts& parts) {
        const auto T = static_cast<size_t>(parts.model.T);
        if (parts.policy) {
            view_ = {parts.policy->order,
                     {parts.policy->lower, parts.policy->upper},
                     {parts.policy->threshold}};
            return;
        }
        order_.resize(T);
        std::iota(order_.begin(), order_.end(), 0);
        lower_.assign(T, -kInf), upper_.assign(T, kInf);
        view_ = {order_, {lower_, upper_}, {parts.model.threshold}};
    }
    const PolicyView& view() const { return view_; }

  private:
    std::vector<int32_t> order_;
    std::vector<double> lower_, upper_;
    PolicyView view_;
};

std::span<const double> survival_of(const FileParts& parts) {
    return parts.policy ? std::span<const double>(parts.policy->survival)
                        : std::span<const double>();
}

// Labels as they are counted here from decisions of two classes.
template <class Run>
void with_bytes(int64_t n, const Decided& out, const Run& run) {
    uint8_t* const positive = call_scratch().positive.of(static_cast<size_t>(n));
    run(DecisionsOut{positive, out.steps, out.score});
    std::copy_n(positive, n, out.label);
}

// Rows of both types go to one template of the same name with `_any`.
template <class Self>
class AnyRows : public Evaluator {
  public:
    void decide(const RowsView<float>& rows, const Decided& out, int threads) const final {
        self().decide_any(rows, out, threads);
    }
    void decide(const RowsView<double>& rows, const Decided& out, int threads) const final {
        self().decide_any(rows, out, threads);
    }
    void decide_one(const float* row, const Decided& out) const final {
        const PlainFloats plain;
        self().decide_any_one(row, out);
    }
    void decide_one(const double* row, const Decided& out) const final {
        const PlainFloats plain;
        self().decide_any_one(row, out);
    }
    void score_full(const RowsView<float>& rows, double* full, int threads) const final {
        self().score_any(rows, full, threads);
    }
    void score_full(const RowsView<double>& rows, double* full, int threads) const final {
        self().score_any(rows, full, threads);
    }

  private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class Real>
class TreeEvaluator final : public AnyRows<TreeEvaluator<Real>> {
  public:
    TreeEvaluator(const Container& file, const FileParts& parts)
        : threshold_(Thresholds(parts).view().target.threshold),
          forest_(files::flat_trees<Real>(file, parts.model), parts.model.schema.n_features,
                  parts.model.rules),
          full_(forest_),
          quit_(full_, Thresholds(parts).view(), survival_of(parts)) {}

    int32_t label_of(const double* full) const override { return *full >= threshold_; }

    template <class In>
    void decide_any(const RowsView<In>& rows, const Decided& out, int threads) const {
        with_bytes(rows.n, out, [&](const DecisionsOut& to) { quit_.decide(rows, to, threads); });
    }
    template <class In>
    void decide_any_one(const In* row, const Decided& out) const {
        uint8_t positive = 0;
        quit_.walk_on(quit_.start_one(), row, {&positive, out.steps, out.score});
        *out.label = positive;
    }
    template <class In>
    void score_any(const RowsView<In>& rows, double* full, int threads) const {
        full_.score(rows, nullptr, full, threads);
    }

  private:
    double threshold_;
    Forest<Real> forest_;
    FullEngine<Real> full_;
    QuitEngine<Real> quit_;
};

template <class Real>
class LatticeEvaluator final : public AnyRows<LatticeEvaluator<Real>> {
  public:
    LatticeEvaluator(const Container& file, const FileParts& parts)
        : threshold_(Thresholds(parts).view().target.threshold),
          lattices_(files::flat_lattices<Real>(file), parts.model.schema.n_features,
                    parts.model.rules.base),
          full_(lattices_),
          quit_(lattices_, Thresholds(parts).view()) {}

    int32_t label_of(const double* full) const override { return *full >= threshold_; }

    template <class In>
    void decide_any(const RowsView<In>& rows, const Decided& out, int threads) const {
        with_bytes(rows.n, out, [&](const DecisionsOut& to) {
            with_contiguous(
                rows, threads, [&](const In* some, int64_t begin, int64_t n, int threads) {
                    quit_.decide(some, n, {to.positive + begin, to.steps + begin, to.score + begin},
                                 threads);
                });
        });
    }
    template <class In>
    void decide_any_one(const In* row, const Decided& out) const {
        uint8_t positive = 0;
        quit_.decide_one(row, {&positive, out.steps, out.score});
        *out.label = positive;
    }
    template <class In>
    void score_any(const RowsView<In>& rows, double* full, int threads) const {
        with_contiguous(rows, threads, [&](const In* some, int64_t begin, int64_t n, int threads) {
            full_.score(some, n, nullptr, full + begin, threads);
        });
    }

  private:
    double threshold_;
    Lattices<Real> lattices_;
    LatticeEngine<Real> full_, quit_;
};

// What makes a LeadPolicyView, or one that never quits.
struct Leads {
    explicit Leads(const FileParts& parts) {
        if (parts.policy) {
            const files::PolicyParts& policy = *parts.policy;
            view = {policy.order, policy.lead, static_cast<int32_t>(parts.model.K), policy.drop,
                    policy.only};
            return;
        }
        order.resize(static_cast<size_t>(parts.model.T));
        std::iota(order.begin(), order.end(), 0);
        lead.assign(order.size() * static_cast<size_t>(parts.model.K), kInf);
        view = {order, lead, static_cast<int32_t>(parts.model.K)};
    }
    std::vector<int32_t> order;
    std::vector<double> lead;
    LeadPolicyView view;
};

template <class Real>
class ClassEvaluator final : public AnyRows<ClassEvaluator<Real>> {
  public:
    ClassEvaluator(const FlatTrees<Real>& flat, const FileParts& parts, const ClassArrays& classes)
        : forest_(flat, parts.model.schema.n_features, parts.model.rules, classes),
          full_(forest_),
          quit_(full_, Leads(parts).view, survival_of(parts)) {}

    int32_t label_of(const double* full) const override {
        return forest_.ties().decide(full, forest_.n_classes());
    }

    template <class In>
    void decide_any(const RowsView<In>& rows, const Decided& out, int threads) const {
        quit_.decide(rows, {out.label, out.steps, out.score}, threads);
    }
    template <class In>
    void decide_any_one(const In* row, const Decided& out) const {
        *out.label = quit_.decide_one(row, out.steps, out.score);
    }
    template <class In>
    void score_any(const RowsView<In>& rows, double* full, int threads) const {
        full_.score(rows, nullptr, full, threads);
    }

  private:
    ClassForest<Real> forest_;
    ClassEngine<Real> full_;
    LeadEngine<Real> quit_;
};

// Trees some of whose columns are computed from combinations of others, for a block of rows at a
// time.
class CombinedEvaluator final : public AnyRows<CombinedEvaluator> {
  public:
    CombinedEvaluator(std::unique_ptr<const Combinations> made,
                      std::unique_ptr<const Evaluator> trees, int64_t n_scores)
        : made_(std::move(made)), trees_(std::move(trees)), n_scores_(n_scores) {}

    int32_t label_of(const double* full) const override { return trees_->label_of(full); }

    template <class In>
    void decide_any(const RowsView<In>& rows, const Decided& out, int threads) const {
        each_block(rows, threads, [&](const RowsView<float>& wide, int64_t begin) {
            trees_->decide(wide,
                           {out.label + begin, out.steps + begin,
                            out.score ? out.score + begin * n_scores_ : nullptr},
                           threads);
        });
    }
    template <class In>
    void decide_any_one(const In* row, const Decided& out) const {
        double* const narrow = call_scratch().narrow.of(static_cast<size_t>(made_->n_features()));
        float* const wide = call_scratch().wide.of(static_cast<size_t>(made_->n_columns()));
        std::copy_n(row, made_->n_features(), narrow);
        made_->expand(narrow, 1, wide);
        trees_->decide_one(static_cast<const float*>(wide), out);
    }
    template <class In>
    void score_any(const RowsView<In>& rows, double* full, int threads) const {
        each_block(rows, threads, [&](const RowsView<float>& wide, int64_t begin) {
            trees_->score_full(wide, full + begin * n_scores_, threads);
        });
    }

  private:
    template <class In, class Run>
    void each_block(const RowsView<In>& rows, int threads, const Run& run) const {
        constexpr int64_t kValues = 1 << 21;
        const int64_t width = made_->n_columns(), before = made_->n_features();
        const int64_t most = std::clamp<int64_t>(kValues / width, 256, 1 << 16);
        for (int64_t begin = 0; begin < rows.n; begin += most) {
            const int64_t n = std::min(most, rows.n - begin);
            float* const wide = call_scratch().wide.of(static_cast<size_t>(n * width));
            parallel_for(n, 1024, threads, [&](int64_t first, int64_t last) {
                const auto some = rows.part(begin + first, begin + last);
                const auto size = static_cast<size_t>(some.n * before);
                double* const narrow = call_scratch().narrow.of(size);
                for (int64_t i = 0; i < some.n; ++i)
                    for (int64_t j = 0; j < before; ++j)
                        narrow[i * before + j] =
                            some.data[i * some.row_stride + j * some.column_stride];
                made_->expand(narrow, some.n, wide + first * width);
            });
            run(RowsView<float>{wide, n, width, width, 1}, begin);
        }
    }

    std::unique_ptr<const Combinations> made_;
    std::unique_ptr<const Evaluator> trees_;  // of made_->n_columns() features
    int64_t n_scores_;
};

template <class Real>
std::unique_ptr<const Evaluator> make(const Container& file, const FileParts& parts) {
    switch (parts.model.family) {
        case files::Family::kTrees:
            return std::make_unique<TreeEvaluator<Real>>(file, parts);
        case files::Family::kClassTrees:
            return std::make_unique<ClassEvaluator<Real>>(
                files::flat_trees<Real>(file, parts.model), parts,
                files::class_arrays(file, parts.model));
        case files::Family::kLattices:
            return std::make_unique<LatticeEvaluator<Real>>(file, parts);
    }
    return nullptr;
}

template <class Real>
std::unique_ptr<const Evaluator> make_shares(const Container& file, const FileParts& parts) {
    FlatTrees<Real> flat = files::flat_trees<Real>(file, parts.model);
    std::vector<double> leaves;  // (n_leaves, 2)
    for (size_t i = 0; i < flat.leaf_value.size(); ++i) {
        leaves.push_back(flat.leaf_other[i]);
        leaves.push_back(flat.leaf_value[i]);
    }
    std::vector<int64_t> begin(static_cast<size_t>(parts.model.T) + 1);
    std::iota(begin.begin(), begin.end(), 0);
    const double start[2] = {0.0, 0.0};
    flat.leaf_value = {}, flat.leaf_other = {};
    FileParts both{parts.model, std::nullopt, ""};
    both.model.K = 2;
    both.model.rules.summation = Summation::kFloat64;
    return std::make_unique<ClassEvaluator<Real>>(flat, both,
                                                  ClassArrays{2, {}, begin, leaves, start, {}});
}

}  // namespace

std::unique_ptr<const Evaluator> make_evaluator(const Container& file, const FileParts& parts) {
    if (parts.model.combined) {
        auto made = std::make_unique<Combinations>(files::combination_arrays(file, parts.model));
        FileParts inner = parts;
        inner.model.schema.n_features = made->n_columns();
        auto trees = make<float>(file, inner);
        return std::make_unique<CombinedEvaluator>(std::move(made), std::move(trees),
                                                   parts.model.K);
    }
    return parts.model.schema.single ? make<float>(file, parts) : make<double>(file, parts);
}

std::unique_ptr<const Evaluator> make_share_evaluator(const Container& file,
                                                      const FileParts& parts) {
    return parts.model.schema.single ? make_shares<float>(file, parts)
                                     : make_shares<double>(file, parts);
}

}  // namespace qwyc::capi
