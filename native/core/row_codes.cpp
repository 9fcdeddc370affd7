#include "core/row_codes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace qwyc {

namespace {

Asks asked_by(const MaskedTrees& trees, int32_t q) {
    if (q < trees.or_missing) return Asks::kAtLeast;
    return q < trees.missing ? Asks::kAtLeastOrMissing : Asks::kMissing;
}

// What a question is about, whatever its number: the feature, whether zeros are missing, what is
// asked, and the cut.
using Key = std::tuple<int32_t, bool, Asks, double>;

Key key_of(const MaskedTrees& trees, int32_t q) {
    int32_t slot = trees.slot[q];
    bool zero_is_missing = false;
    for (const ZeroIsMissing& zero : trees.zeros)
        if (zero.to == slot) slot = zero.from, zero_is_missing = true;
    const double cut = trees.cut_double.empty() ? trees.cut_single[q] : trees.cut_double[q];
    const Asks asks = asked_by(trees, q);
    return {trees.features[slot], zero_is_missing, asks, asks == Asks::kMissing ? 0 : cut};
}

}  // namespace

CodedQuestions RowCodes::of(const MaskedTrees& trees) const {
    struct At {
        uint8_t column, code;
    };
    std::map<Key, At> at;
    for (size_t c = 0; c < columns.size(); ++c)
        for (int32_t q = columns[c].begin; q < columns[c].end; ++q)
            at[key_of(questions, q)] = {static_cast<uint8_t>(c),
                                        static_cast<uint8_t>(q - columns[c].begin + 1)};
    CodedQuestions out{{0}, {0}, static_cast<int32_t>(columns.size())};
    for (int32_t q = 1; q < trees.first_set; ++q) {
        const At here = at.at(key_of(trees, q));
        out.column.push_back(here.column), out.code.push_back(here.code);
    }
    return out;
}

template <class Real>
RowCodes make_codes(const Forest<Real>& forest, const Questions<Real>& questions,
                    std::span<const int32_t> trees) {
    std::vector<int32_t> asked;
    for (int32_t tree : trees) {
        const auto all = questions.of_tree(forest, tree);
        asked.insert(asked.end(), all.begin(), all.end());
    }
    std::sort(asked.begin(), asked.end());
    const auto different = std::unique(asked.begin(), asked.end()) - asked.begin();
    if (different > int64_t{kCodeBytes} * kMaxCode) return {};
    RowCodes out;
    out.questions = lay_out_questions(forest, questions, trees);
    const MaskedTrees& all = out.questions;
    if (all.first_set != all.n_questions) return {};
    for (int32_t begin = 1, end = 1; begin < all.first_set; begin = end) {
        const Asks asks = asked_by(all, begin);
        while (end < all.first_set && asked_by(all, end) == asks &&
               all.slot[end] == all.slot[begin])
            ++end;
        if (end - begin > kMaxCode || out.columns.size() == kCodeBytes) return {};
        out.columns.push_back({all.slot[begin], begin, end, asks});
    }
    return out;
}

template RowCodes make_codes(const Forest<float>&, const Questions<float>&,
                             std::span<const int32_t>);
template RowCodes make_codes(const Forest<double>&, const Questions<double>&,
                             std::span<const int32_t>);

}  // namespace qwyc
