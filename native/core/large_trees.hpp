// Trees of more than kMaxMaskedLeaves leaves on masks, for full scores.
//
// The rows that reach a node are a mask, which a split divides. Leaves have numbers such that each
// split changes few bits of them: the number of a row's leaf is the exclusive or of what the splits
// at which it goes right change. So a plane is the exclusive or of masks of rows that go right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/masked_trees.hpp"

namespace qwyc {

struct LargeLayout {
    // Rows that change bit b of their number, flips[b], are those at a node that answer yes; or,
    // without a question, all rows at a node.
    struct Flip {
        int32_t at, question;  // -1: none
    };
    std::vector<LargeSplit> splits;  // parents before children
    std::vector<std::vector<Flip>> flips;
    int32_t n_nodes;             // places for masks of rows
    std::vector<int32_t> code;   // leaf numbers, of leaves from the left
    std::vector<int32_t> leaf;   // absolute leaves, from the left
};

// question(node): the number of a split's question.
template <class Real>
LargeLayout lay_out_large(const Forest<Real>& forest, int32_t tree,
                          const std::function<uint16_t(int32_t)>& question);

// Costs in nanoseconds for one row of many, as in core/cost_model.hpp.
struct LargeCost {
    static constexpr double kSplit = 0.0025, kTree = 0.8;  // on masks
    static constexpr double kLevel = 1.05;                 // of a walk
    static constexpr double kSplitOfWord = 0.8;            // for up to 64 rows, however few
};

// Whether the large trees among those that `questions` has on masks cost less on masks than walked.
template <class Real>
bool masks_pay(const Forest<Real>& forest, const Questions<Real>& questions);

}  // namespace qwyc
