#include "capi/model.hpp"

#include <algorithm>

#include "capi/scratch.hpp"
#include "core/parallel.hpp"

namespace qwyc::capi {

namespace {

constexpr int64_t kRowsAtOnce = 1 << 18;  // that are evaluated with arrays of this library

// Arrays for those that a caller does not want. Evaluators of K classes do without scores.
Decided with_scratch(const Wanted& out, int64_t n, int64_t K) {
    CallScratch& mine = call_scratch();
    const auto rows = static_cast<size_t>(n);
    double* const score = out.score || K > 1 ? out.score : mine.score.of(rows);
    return {out.label ? out.label : mine.label.of(rows),
            out.steps ? out.steps : mine.steps.of(rows), score};
}

bool uses_shares(const files::ModelParts& model) {
    return model.family == files::Family::kTrees && model.rules.summation == Summation::kShares &&
           !model.classes.values.empty();
}

}  // namespace

Model::Model(const files::Container& file) : Model(file, files::read_parts(file)) {}

Model::Model(const files::Container& file, files::FileParts parts)
    : model_(parts.model),
      kind_(!parts.policy                                    ? ModelKind::kPredictor
            : parts.policy->target == files::Target::kWithin ? ModelKind::kApproximation
                                                             : ModelKind::kClassifier),
      certificate_(parts.certificate),
      rules_(model_.schema),
      evaluator_(make_evaluator(file, parts)),
      probability_(Output::of_probabilities(model_)),
      value_(Output::of_values(model_)) {
    if (kind_ == ModelKind::kApproximation) {
        const files::PolicyParts& policy = *parts.policy;
        tolerance_ = policy.tolerance;
        slope_.assign(policy.slope.begin(), policy.slope.end());
        begin_.assign(policy.begin.begin(), policy.begin.end());
        knots_.assign(policy.knots.begin(), policy.knots.end());
        offsets_.assign(policy.offsets.begin(), policy.offsets.end());
        estimates_ = {slope_, begin_, knots_, offsets_};
        const Output& output = classes().empty() ? value_ : probability_;
        if (!output.refused().empty()) throw files::UnsupportedError(output.refused());
    } else if (uses_shares(model_)) {
        shares_ = make_share_evaluator(file, parts);
    }
    for (const auto& [feature, known] : model_.schema.categories)
        for (size_t code = 0; code < known.size(); ++code)
            if (known[code].kind == files::Label::Kind::kText)
                code_of_text_[feature][known[code].text] = static_cast<double>(code);
}

void Model::check_decides() const {
    if (classes().empty() && kind_ == ModelKind::kPredictor)
        throw files::UnsupportedError(
            "the file holds a model of values, which has no classes to decide among: use "
            "qwyc_values");
}

void Model::finish(int64_t n, const Decided& decided) const {
    if (kind_ != ModelKind::kApproximation) return;
    const bool has_classes = !classes().empty();
    const Output& output = has_classes ? probability_ : value_;
    for (int64_t i = 0; i < n; ++i) {
        const double score = estimates_(decided.steps[i], decided.score[i]);
        decided.label[i] = has_classes ? score >= model_.threshold : -1;
        double out[2];
        output.apply(&score, 1, 1, out);
        decided.score[i] = out[output.width(1) - 1];
    }
}

template <class In>
void Model::decide_part(const RowsView<In>& rows, const Wanted& out, int threads) const {
    const Decided decided = with_scratch(out, rows.n, model_.K);
    evaluator_->decide(rows, decided, threads);
    if (kind_ != ModelKind::kApproximation) return;
    parallel_for(rows.n, 4096, threads, [&](int64_t begin, int64_t end) {
        finish(end - begin, {decided.label + begin, decided.steps + begin, decided.score + begin});
    });
}

template <class In>
void Model::decide(const RowsView<In>& rows, const Wanted& out, int threads, int64_t number) const {
    check_decides();
    const int64_t K = model_.K;
    const auto use = [&](const auto& some, int64_t first) {
        for (int64_t i = 0; i < some.n; i += kRowsAtOnce) {
            const int64_t begin = first + i;
            decide_part(
                some.part(i, std::min(i + kRowsAtOnce, some.n)),
                {out.label ? out.label + begin : nullptr, out.steps ? out.steps + begin : nullptr,
                 out.score ? out.score + begin * K : nullptr},
                threads);
        }
    };
    with_readable(rows, rules_, model_.schema.single, use, number);
}

template <class In>
void Model::decide_one(const In* row, const Wanted& out) const {
    check_decides();
    const PlainFloats plain;
    const Decided decided = with_scratch(out, 1, model_.K);
    const auto run = [&](const auto* numbers) {
        if (rules_.checks()) rules_.check(numbers, 1, 0);
        evaluator_->decide_one(numbers, decided);
        finish(1, decided);
    };
    if (!rules_.has_sentinel()) return run(row);
    const int64_t width = model_.schema.n_features;
    const auto convert = [&]<class Real>(Real* to) {
        for (int64_t j = 0; j < width; ++j) to[j] = rules_.converted<Real>(row[j]);
        run(static_cast<const Real*>(to));
    };
    if (model_.schema.single)
        convert(call_scratch().single_row.of(static_cast<size_t>(width)));
    else
        convert(call_scratch().double_row.of(static_cast<size_t>(width)));
}

template <class In, class Write>
void Model::in_full(const Evaluator& evaluator, int64_t K, const RowsView<In>& rows, int threads,
                    const Write& write) const {
    constexpr int64_t kScores = 1 << 20;
    const int64_t rows_at_once = std::max<int64_t>(kScores / K, 256);
    with_readable(rows, rules_, model_.schema.single, [&](const auto& some, int64_t first) {
        for (int64_t begin = 0; begin < some.n; begin += rows_at_once) {
            const int64_t n = std::min(rows_at_once, some.n - begin);
            double* const full = call_scratch().full.of(static_cast<size_t>(n * K));
            evaluator.score_full(some.part(begin, begin + n), full, threads);
            write(full, first + begin, n);
        }
    });
}

template <class In>
void Model::decide_full(const RowsView<In>& rows, int32_t* label, double* score,
                        int threads) const {
    const int64_t K = model_.K;
    in_full(*evaluator_, K, rows, threads, [&](const double* full, int64_t begin, int64_t n) {
        if (score) std::copy_n(full, n * K, score + begin * K);
        if (!label) return;
        for (int64_t i = 0; i < n; ++i)
            label[begin + i] = classes().empty() ? -1 : evaluator_->label_of(full + i * K);
    });
}

template <class In>
void Model::probabilities(const RowsView<In>& rows, double* out, int threads) const {
    const int64_t K = model_.K, n_classes = static_cast<int64_t>(classes().size());
    if (n_classes == 0)
        throw files::UnsupportedError(
            "the file holds a model of values, which gives no probabilities: use qwyc_values");
    if (shares_)
        return in_full(*shares_, 2, rows, threads,
                       [&](const double* full, int64_t begin, int64_t n) {
                           std::copy_n(full, 2 * n, out + 2 * begin);
                       });
    if (!probability_.refused().empty()) throw files::UnsupportedError(probability_.refused());
    in_full(*evaluator_, K, rows, threads, [&](const double* full, int64_t begin, int64_t n) {
        double* const to = out + begin * n_classes;
        if (probability_.width(K) == n_classes) return probability_.apply(full, n, K, to);
        // Of one score: the positive class, and 1 less that.
        for (int64_t i = 0; i < n; ++i) {
            double positive;
            probability_.apply(full + i, 1, 1, &positive);
            to[2 * i] = probability_.single() ? 1.0f - static_cast<float>(positive) : 1 - positive;
            to[2 * i + 1] = positive;
        }
    });
}

template <class In>
void Model::values(const RowsView<In>& rows, double* out, int threads) const {
    const int64_t K = model_.K;
    if (!classes().empty())
        throw files::UnsupportedError(
            "the file holds a model of classes, which gives no values: use qwyc_decide or "
            "qwyc_probabilities");
    if (!value_.refused().empty()) throw files::UnsupportedError(value_.refused());
    if (value_.width(K) != K)
        throw files::UnsupportedError("the outputs of this model are no values of its scores");
    in_full(*evaluator_, K, rows, threads, [&](const double* full, int64_t begin, int64_t n) {
        value_.apply(full, n, K, out + begin * K);
    });
}

#define QWYC_INSTANTIATE(In)                                                             \
    template void Model::decide(const RowsView<In>&, const Wanted&, int, int64_t) const; \
    template void Model::decide_one(const In*, const Wanted&) const;                     \
    template void Model::decide_full(const RowsView<In>&, int32_t*, double*, int) const; \
    template void Model::probabilities(const RowsView<In>&, double*, int) const;         \
    template void Model::values(const RowsView<In>&, double*, int) const;
QWYC_INSTANTIATE(float)
QWYC_INSTANTIATE(double)

}  // namespace qwyc::capi
