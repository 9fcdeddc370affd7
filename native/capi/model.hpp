// A loaded file: what is behind the handle `qwyc_model` of include/qwyc.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capi/evaluator.hpp"
#include "capi/outputs.hpp"
#include "capi/rows.hpp"
#include "core/estimates.hpp"
#include "files/container.hpp"

namespace qwyc::capi {

enum class ModelKind : uint8_t { kClassifier = 1, kPredictor = 2, kApproximation = 3 };

// Where decisions go; each may be null.
struct Wanted {
    int32_t* label;
    int32_t* steps;
    double* score;
};

class Model {
  public:
    explicit Model(const files::Container& file);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    ModelKind kind() const { return kind_; }
    const files::Schema& schema() const { return model_.schema; }
    int64_t n_models() const { return model_.T; }
    int64_t n_scores() const { return model_.K; }
    const std::vector<files::Label>& classes() const { return model_.classes.values; }
    const std::string& certificate() const { return certificate_; }
    double tolerance() const { return tolerance_; }

    // Rows of any strides, of which the first has the number `number` in messages.
    template <class In>
    void decide(const RowsView<In>& rows, const Wanted& out, int threads, int64_t number = 0) const;
    template <class In>
    void decide_one(const In* row, const Wanted& out) const;
    template <class In>
    void decide_full(const RowsView<In>& rows, int32_t* label, double* score, int threads) const;
    template <class In>
    void probabilities(const RowsView<In>& rows, double* out, int threads) const;
    template <class In>
    void values(const RowsView<In>& rows, double* out, int threads) const;

    // The code of a category; null is a missing one.
    double code_of(int64_t feature, const char* text) const;
    double code_of(int64_t feature, int64_t value) const;
    double code_of(int64_t feature, double value) const;

  private:
    Model(const files::Container& file, files::FileParts parts);

    template <class In>
    void decide_part(const RowsView<In>& rows, const Wanted& out, int threads) const;
    // Turns running sums of n rows into outputs within the tolerance.
    void finish(int64_t n, const Decided& decided) const;
    // Calls write(scores, begin, n) with full scores of blocks of rows.
    template <class In, class Write>
    void in_full(const Evaluator& evaluator, int64_t K, const RowsView<In>& rows, int threads,
                 const Write& write) const;
    void check_decides() const;

    const std::vector<files::Label>& categories(int64_t feature) const;
    double unseen(int64_t feature, const std::string& shown, bool is_text) const;
    double code_of_hashed(int64_t feature, const std::string& text) const;
    [[noreturn]] void refuse_unhashed(int64_t feature, const std::string& shown) const;

    files::ModelParts model_;
    ModelKind kind_;
    std::string certificate_;
    double tolerance_ = 0;
    RowRules rules_;
    std::unique_ptr<const Evaluator> evaluator_;
    std::unique_ptr<const Evaluator> shares_;  // where probabilities are shares of two classes
    Output probability_, value_;
    // Estimates of full scores, of an approximation.
    std::vector<double> slope_, knots_, offsets_;
    std::vector<int64_t> begin_;
    EstimatesView estimates_;
    // By feature, the codes of categories that are text.
    std::unordered_map<int64_t, std::unordered_map<std::string_view, double>> code_of_text_;
};

}  // namespace qwyc::capi
