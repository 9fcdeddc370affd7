// Trees of more than kMaxMaskedLeaves leaves on masks, for full scores.
//
// The rows that reach a node are a mask, which a split divides. Leaves have numbers such that each
// split changes few bits of them: the number of a row's leaf is the exclusive or of what the splits
// at which it goes right change. So a plane is the exclusive or of masks of rows that go right.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
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
    int32_t n_nodes;            // places for masks of rows
    std::vector<int32_t> code;  // leaf numbers, of leaves from the left
    std::vector<int32_t> leaf;  // absolute leaves, from the left
};

// question(node): the number of a split's question.
template <class Real>
LargeLayout lay_out_large(const Forest<Real>& forest, int32_t tree,
                          const std::function<uint16_t(int32_t)>& question);

// Questions of trees that are evaluated on masks together. Their masks, 64 bytes each, should stay
// in the second-level cache.
inline constexpr int32_t kMaxQuestions = 8192;

// Nanoseconds of large trees: to make their planes for a slab, or for one of a single word; and to
// look up and add their values for a word.
struct LargeCost {
    double slab = 0, one_word = 0, word = 0;

    LargeCost& operator+=(const LargeCost& other) {
        slab += other.slab, one_word += other.one_word, word += other.word;
        return *this;
    }
    // One of many.
    double of_a_row() const { return slab / kSlab + word / 64; }
};
// Of a tree with so many leaves.
LargeCost large_cost(int64_t leaves, bool oblivious);

// Nanoseconds for one row of many: to answer questions, and for a large tree on masks.
double answers_cost(const MaskedTrees& trees);
template <class Real>
double large_tree_cost(const Forest<Real>& forest, const Questions<Real>& questions, int32_t tree);

// From how many rows on, in a batch of at most kSlab, large trees cost less on masks than walked,
// by instruction set; more than kSlab where they never do.
inline constexpr std::array<std::string_view, 3> kMaskIsas = {"avx512", "avx2", "portable"};
using RowsForMasks = std::array<int32_t, std::size(kMaskIsas)>;

// The questions of all trees, if there are large ones that have a place on masks, and small ones
// keep theirs; otherwise null. tables: those in which the value of a tree's leaf is looked up.
template <class Real>
struct QuestionsOfLarge {
    std::unique_ptr<Questions<Real>> questions;
    RowsForMasks from{};
};
template <class Real>
QuestionsOfLarge<Real> questions_of_large(const Forest<Real>& forest, const Questions<Real>& small,
                                          int32_t tables);

}  // namespace qwyc
