// Rows as bytes: for each column, how many of its cuts are at most the row's value. A row that is
// looked at again is then one cache line, and a comparison of bytes answers a question for 64 rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/masked_trees.hpp"

namespace qwyc {

inline constexpr int32_t kCodeBytes = 64;  // of a row: up to so many columns
inline constexpr int32_t kMaxCode = 255;   // cuts of a column

// Questions [begin, end) of RowCodes::questions, which ask the same of one slot, cuts ascending. A
// missing value has code 0 or, where it answers with yes, the last code.
struct CodeColumn {
    int32_t slot, begin, end;
    Asks asks;  // kAtLeast, kAtLeastOrMissing or kMissing
};

// How codes answer the questions of some trees: with yes where the code of `column[q]` is at least
// `code[q]`.
struct CodedQuestions {
    std::vector<uint8_t> column, code;  // by question
    int32_t n_columns = 0;              // of a row
};

struct RowCodes {
    MaskedTrees questions;  // of all trees; no trees
    std::vector<CodeColumn> columns;

    // Whether there are codes: not where trees ask about categories, or too many questions.
    bool usable() const { return !columns.empty(); }

    // For trees of the same forest whose questions are all in `questions`.
    CodedQuestions of(const MaskedTrees& trees) const;
};

// Codes for the questions of some masked trees.
template <class Real>
RowCodes make_codes(const Forest<Real>& forest, const Questions<Real>& questions,
                    std::span<const int32_t> trees);

}  // namespace qwyc
