// `.qwyc` files against the C library: damaged ones, and ones that were changed and sealed again.
// What is taken decides a few rows in every way that there is, and all ways agree; full scores and
// decisions of trees are compared with plain loops.
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "files/model.hpp"
#include "fuzz/draft.hpp"
#include "qwyc.h"
#include "tests/forests.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using namespace qwyc;

constexpr int64_t kRows = 4, kMostNumbers = 1 << 10;

void check(bool ok, const char* what) {
    if (ok) return;
    std::cerr << what << "; the last error was: " << qwyc_last_error() << "\n";
    std::abort();
}

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

// Statuses that a sound model may give for some rows. Anything else is a defect.
bool decided(qwyc_status status) {
    check(status == QWYC_OK || status == QWYC_ERROR_ROWS || status == QWYC_ERROR_UNSUPPORTED,
          "a call failed in a way that it must not");
    return status == QWYC_OK;
}

struct Found {
    explicit Found(int64_t n_scores)
        : label(kRows, -7), steps(kRows, -7), score(static_cast<size_t>(kRows * n_scores), -7) {}

    void check_same(const Found& other, const char* what) const {
        check(label == other.label && steps == other.steps, what);
        check(std::equal(score.begin(), score.end(), other.score.begin(), same), what);
    }

    std::vector<int32_t> label, steps;
    std::vector<double> score;
};

// Numbers as rows hold them, and NaN and infinities in one of them.
std::vector<double> some_rows(int64_t width, bool special) {
    auto rows = tests::random_rows<double>(3, kRows, width);
    for (double& x : rows) {
        if (!special && !std::isfinite(x)) x = 2;
        x = static_cast<float>(x);  // so that both types hold the same
    }
    return rows;
}

template <class Real>
void check_against_plain_loops(const files::Container& file, const files::FileParts& parts,
                               const std::vector<double>& rows, const Found& quit,
                               const Found& full) {
    const FlatTrees<Real> flat = files::flat_trees<Real>(file, parts.model);
    const auto copy = [](const auto& span) { return std::vector(span.begin(), span.end()); };
    tests::Trees<Real> trees;
    trees.node_begin = copy(flat.node_begin), trees.leaf_begin = copy(flat.leaf_begin);
    trees.feature = copy(flat.feature), trees.threshold = copy(flat.threshold);
    trees.left = copy(flat.left), trees.right = copy(flat.right), trees.flags = copy(flat.flags);
    trees.category_begin = copy(flat.category_begin);
    trees.category_words = copy(flat.category_words);
    trees.leaf_value = copy(flat.leaf_value), trees.leaf_other = copy(flat.leaf_other);
    trees.n_features = parts.model.schema.n_features;
    trees.rules = parts.model.rules;
    const std::vector<double> scores = tests::full_scores(trees, rows);
    check(std::equal(scores.begin(), scores.end(), full.score.begin(), same),
          "a full score is not that of plain loops");
    if (!parts.policy) return;
    const files::PolicyParts& policy = *parts.policy;
    const auto rule = [&](int32_t r, double sum) {
        if (sum > policy.upper[r]) return Outcome::kPositive;
        return sum < policy.lower[r] ? Outcome::kNegative : Outcome::kContinue;
    };
    const tests::Decided expected = tests::decide_by(
        rule, copy(policy.order), policy.threshold, tests::step_values(trees, rows),
        trees.rules.base / trees.rules.divisor, scores);
    for (size_t i = 0; i < scores.size(); ++i)
        check(expected.positive[i] == quit.label[i] && expected.steps[i] == quit.steps[i] &&
                  same(expected.score[i], quit.score[i]),
              "a decision is not that of plain loops");
}

// What the library took is sound for the reader behind it, which gives the arrays.
void check_trees(std::span<const uint8_t> bytes, const std::vector<double>& rows, const Found& quit,
                 const Found& full) {
    files::FileBytes content(bytes.size());
    std::memcpy(content.data(), bytes.data(), bytes.size());
    const files::Container file(std::move(content));
    const files::FileParts parts = files::read_parts(file);
    if (parts.model.family != files::Family::kTrees || !std::isnan(parts.model.schema.missing) ||
        (parts.policy && parts.policy->target != files::Target::kTwoClasses))
        return;
    if (parts.model.schema.single)
        check_against_plain_loops<float>(file, parts, rows, quit, full);
    else
        check_against_plain_loops<double>(file, parts, rows, quit, full);
}

void describe(const qwyc_model* model) {
    double code;
    check(qwyc_kind_of(model) >= QWYC_CLASSIFIER && qwyc_kind_of(model) <= QWYC_APPROXIMATION,
          "a model has no kind");
    for (int64_t j = 0; j < std::min<int64_t>(qwyc_n_features(model), 4); ++j) {
        (void)qwyc_feature_name(model, j);
        for (const char* text : {"x", "", "a", "1"})
            if (qwyc_code_of_text(model, j, text, &code) == QWYC_OK)
                check(std::isnan(code) || code >= -1, "a category has an impossible code");
        (void)qwyc_code_of_integer(model, j, 1, &code);
        (void)qwyc_code_of_number(model, j, 0.5, &code);
    }
    check(!qwyc_feature_name(model, qwyc_n_features(model)), "there is a feature too many");
    for (int64_t k = 0; k < qwyc_n_classes(model); ++k)
        check(qwyc_class_name(model, k) != nullptr, "a class has no name");
    check(std::isfinite(qwyc_tolerance(model)), "the tolerance is no number");
    (void)qwyc_certificate(model);
}

void use(const qwyc_model* model, std::span<const uint8_t> bytes) {
    describe(model);
    const int64_t width = qwyc_n_features(model), K = qwyc_n_scores(model);
    if (width > kMostNumbers || K > kMostNumbers) return;
    for (const bool special : {true, false}) {
        const std::vector<double> numbers = some_rows(width, special);
        const std::vector<float> singles(numbers.begin(), numbers.end());
        const qwyc_rows rows{numbers.data(), QWYC_FLOAT64, kRows, width, 0, 0};
        const qwyc_rows single{singles.data(), QWYC_FLOAT32, kRows, width, 0, 0};
        Found quit(K), other(K), full(K);
        full.steps.assign(kRows, static_cast<int32_t>(qwyc_n_models(model)));
        std::vector<double> outputs(static_cast<size_t>(kRows * std::max<int64_t>(K, 2)));
        decided(qwyc_probabilities(model, &rows, 1, outputs.data()));
        decided(qwyc_values(model, &rows, 1, outputs.data()));
        const bool has_full =
            decided(qwyc_decide_full(model, &rows, 1, full.label.data(), full.score.data()));
        if (!decided(qwyc_decide(model, &rows, 1, quit.label.data(), quit.steps.data(),
                                 quit.score.data())))
            continue;
        check(has_full, "rows are decided early that cannot be decided in full");
        check(qwyc_decide(model, &single, 1, other.label.data(), other.steps.data(),
                          other.score.data()) == QWYC_OK,
              "rows of float32 are refused");
        quit.check_same(other, "rows of float32 are decided differently");
        for (int64_t i = 0; i < kRows; ++i) {
            check(quit.steps[i] >= 1 && quit.steps[i] <= qwyc_n_models(model), "impossible steps");
            check(qwyc_decide_one_f64(model, &numbers[i * width], &other.label[i], &other.steps[i],
                                      &other.score[i * K]) == QWYC_OK,
                  "one row is refused");
        }
        quit.check_same(other, "rows are decided differently one by one");
        std::vector<std::vector<double>> columns(static_cast<size_t>(width));
        std::vector<qwyc_column> apart;
        for (int64_t j = 0; j < width; ++j) {
            for (int64_t i = 0; i < kRows; ++i) columns[j].push_back(numbers[i * width + j]);
            apart.push_back({columns[j].data(), QWYC_FLOAT64});
        }
        check(qwyc_decide_columns(model, apart.data(), width, kRows, 1, other.label.data(),
                                  other.steps.data(), other.score.data()) == QWYC_OK,
              "columns are refused");
        quit.check_same(other, "columns are decided differently");
        if (qwyc_kind_of(model) == QWYC_APPROXIMATION) continue;
        for (int64_t i = 0; i < kRows; ++i)
            if (quit.steps[i] == qwyc_n_models(model))
                check(quit.label[i] == full.label[i], "a complete row is not decided in full");
        check_trees(bytes, numbers, quit, full);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    qwyc_model* model = nullptr;
    const qwyc_status status = qwyc_load_memory(data, size, &model);
    const std::unique_ptr<qwyc_model, void (*)(qwyc_model*)> owner(model, qwyc_free);
    check((status == QWYC_OK) == (model != nullptr), "the status is not that of the model");
    check(status == QWYC_OK || status == QWYC_ERROR_FILE || status == QWYC_ERROR_UNSUPPORTED,
          "loading failed in a way that it must not");
    const std::string_view message = status == QWYC_OK ? "" : qwyc_last_error();
    check(message.empty() == (status == QWYC_OK) && message.size() <= 2000,
          "a message is too long");
    for (const char c : message)
        check(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f,
              "a message has control characters");
    if (model) use(model, {data, size});
    return 0;
}

namespace {

// libFuzzer changes an input several times over. What was written last is not parsed again.
struct Written {
    std::string file;
    std::optional<fuzz::Draft> draft;
} last;

std::optional<fuzz::Draft> draft_of(const uint8_t* data, size_t size) {
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    if (last.draft && file == last.file) return std::move(last.draft);
    return fuzz::Draft::of({data, size});
}

}  // namespace

// Most changes keep the structure and are sealed again; some do not.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
    fuzz::Draft::Engine random(seed);
    if (random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
    auto draft = draft_of(data, size);
    if (!draft) return LLVMFuzzerMutate(data, size, most);
    for (auto k = random() % 4; k < 4; ++k) draft->mutate(random);
    last.file = draft->sealed();
    last.draft = std::move(draft);
    if (last.file.size() > most) return LLVMFuzzerMutate(data, size, most);
    std::memcpy(data, last.file.data(), last.file.size());
    return last.file.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* two,
                                            size_t two_size, uint8_t* out, size_t most,
                                            unsigned seed) {
    fuzz::Draft::Engine random(seed);
    if (random() % 8) return 0;  // libFuzzer makes another change: two more files to parse are slow
    auto draft = fuzz::Draft::of({one, one_size});
    const auto other = fuzz::Draft::of({two, two_size});
    if (!draft || !other) return 0;
    draft->mix(*other, random);
    const std::string file = draft->sealed();
    if (file.size() > most) return 0;
    std::memcpy(out, file.data(), file.size());
    return file.size();
}
