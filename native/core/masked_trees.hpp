// Small trees laid out for evaluation on masks.
//
// For 512 rows, a slab, the answers to a question are a mask of 512 bits. A tree combines the masks
// of its splits, 512 rows at a time, into the bits of each row's leaf number: "planes" of 512 bits.
// The number selects the value that the tree adds.
//
// A slab is 8 words of 64 rows. Bit p of a word belongs to the row that the kernels' order of a
// tile puts there. Rows are in their own order again once leaf numbers are bytes.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/questions.hpp"

namespace qwyc {

inline constexpr int32_t kSlabWords = 8;
inline constexpr int32_t kSlab = 64 * kSlabWords;
inline constexpr int32_t kMaxPlanes = 6;        // bits of a leaf number
inline constexpr int32_t kFewLeaves = 16;       // trees of more may be complete to make them bytes
inline constexpr int32_t kMaxLargePlanes = 12;  // of a tree of up to kMaxLargeLeaves leaves

// How a tree's planes are made.
enum class Form : uint8_t {
    kComplete,   // level by level, as if all leaves were at the same depth
    kOblivious,  // every level asks one question: the masks are the planes
    kReach,      // from the masks of the rows that reach each leaf
    kLarge,      // from the masks of the rows that go right at each split: core/large_trees.hpp
};

// A split of a tree of the form kReach: rows at node `at` go to `left` or `right`. Nodes are
// numbered from 0; the leaf with number k is kMaxMaskedLeaves + k.
struct ReachSplit {
    uint16_t question;
    uint8_t at, left, right;
};

// A split of a tree of the form kLarge. Node 0 is the root; the rows at the i-th split go to node
// 2 i + 1 or, right, 2 i + 2.
struct LargeSplit {
    uint16_t question, at;
};

// Rows in both masks, which are numbered as `planes`, change a bit of their leaf number.
struct Flip {
    uint16_t first, second;
};
inline constexpr int32_t kFlipsAtOnce = 4;  // their number is a multiple; the rest are masks 0

struct MaskedTree {
    Form form;
    uint8_t bits;          // of its leaf number; 0 for a tree of one leaf
    int16_t n_leaves;      // kReach: numbers are below it
    int32_t begin, end;    // kComplete: questions in `heap`; kReach, kLarge: in `splits`, `divided`
    int32_t flips_begin;   // kLarge: in `flip_begin`, bits + 1 of them
    int32_t halves_begin;  // in DoubleTables::halves, if bits <= kMaxPlanes
    int32_t planes_begin;  // in `planes`: `bits` of them, the highest bit first
    int32_t table_begin;   // in the tables of values, by leaf number
    int32_t number_begin;  // bytes of leaf numbers of the trees before it, of a word of rows
};

// Four neighbouring features of a row, read together. Those that no question is about go to a slot
// that nothing reads.
struct Quad {
    int32_t feature;
    int32_t slot[4];
};

// Many questions about the number in one slot, cuts ascending: a search answers all of them, where
// that is faster than comparisons.
struct RankedQuestions {
    int32_t slot, begin, end;
    bool or_missing;
};
inline constexpr int32_t kMinRanked = 32;

// Other questions about numbers: compared one by one.
struct ComparedQuestions {
    int32_t begin, end;
    bool or_missing;
};

// The questions about the category in one slot of a tile.
struct CategoryQuestions {
    int32_t slot, begin, end;
    int32_t classes_count;
    int64_t classes_begin;  // class of each code, in CategoryTables::class_of
};

// Slot `to` holds what slot `from` does, with NaN in place of zeros.
struct ZeroIsMissing {
    int32_t from, to;
};

// Tables of doubles, by leaf number. `halves` has those of trees that are not large as 32-bit
// words, for look-ups in registers: for every 16 doubles, their low words and then their high
// words.
struct DoubleTables {
    std::vector<double> whole;
    std::vector<uint32_t> halves;
};

// The floats that a tree's leaves add, by leaf number: their lowest bytes, then the next...
struct alignas(64) LeafBytes {
    uint8_t byte[4][kMaxMaskedLeaves];
};

struct MaskedTrees {
    // A tile holds 64 values of each slot.
    std::vector<int32_t> features;  // by slot, ascending
    std::vector<Quad> quads;
    std::vector<int32_t> lines;  // features that begin a cache line of a row of floats, if read
    bool dense = false;          // most cache lines of a row are read
    std::vector<ZeroIsMissing> zeros;
    int32_t n_slots = 0;  // with those of `zeros`, and the one that nothing reads

    // Questions by number. The first is kNever; then come those about numbers, kAtLeast up to
    // `or_missing`, kAtLeastOrMissing up to `missing` and kMissing up to `first_set`; then those
    // about categories.
    int32_t n_questions = 1, or_missing = 1, missing = 1, first_set = 1;
    std::vector<int32_t> slot;  // by question
    std::vector<RankedQuestions> ranked;
    std::vector<ComparedQuestions> compared;  // kAtLeast and kAtLeastOrMissing that are not ranked
    std::vector<CategoryQuestions> categorical;
    std::vector<float> cut_single;   // by question
    std::vector<double> cut_double;  // by question, where values may be double; otherwise empty
    std::vector<ClassSet> sets;      // by question; empty where there are no categories
    const uint8_t* class_of = nullptr;
    bool truncates = false;  // category codes are truncated to integers

    // Trees, in the order of their evaluation.
    std::vector<MaskedTree> trees;
    std::vector<uint16_t> heap;       // questions: the root, then level by level
    std::vector<ReachSplit> splits;   // parents before children
    std::vector<LargeSplit> divided;  // parents before children
    std::vector<Flip> flips;
    std::vector<int32_t> flip_begin;      // by plane of a large tree, the highest bit first
    int32_t n_nodes = 0;                  // of large trees at a time; masks after the planes
    std::vector<int32_t> planes;          // where a plane is: question q's mask, or n_questions + k
    int32_t n_planes = 0;                 // that are made
    int32_t number_bytes = 0;             // of all trees: 64 a tree, 128 where it is large
    std::vector<float> step_value;        // 32, 64 or more entries a tree
    DoubleTables leaf_value, leaf_other;  // the same, of full scores; empty if not needed

    int32_t n_trees() const { return static_cast<int32_t>(trees.size()); }
    int32_t n_masks() const { return n_questions + n_planes + n_nodes; }
    bool is_large(int32_t t) const { return trees[t].bits > kMaxPlanes; }

    template <class V>
    const V* cuts() const {
        if constexpr (std::is_same_v<V, float>)
            return cut_single.data();
        else
            return cut_double.data();
    }
};

// Trees of a full evaluation that have planes at the same time: up to so many, from a multiple on.
inline constexpr int32_t kTreesAtOnce = 32;

// Entries of a tree's tables.
inline int32_t size_of_table(const MaskedTree& tree) {
    return tree.bits <= 5 ? 32 : 1 << tree.bits;
}

// Fills `halves` from `whole`, for trees that are laid out.
void halve(const MaskedTrees& trees, DoubleTables& tables);

// The layout of some masked trees, in the order given. `full` adds the tables of full scores, and
// planes are used again after kTreesAtOnce trees. `bytes`: tables are to be LeafBytes, so that
// those of 64 values take no longer than those of 32. The layout refers to `questions`.
template <class Real>
MaskedTrees lay_out(const Forest<Real>& forest, const Questions<Real>& questions,
                    std::span<const int32_t> trees, bool full, bool bytes = false);

// Only the questions of the trees, and how rows are read that they are about.
template <class Real>
MaskedTrees lay_out_questions(const Forest<Real>& forest, const Questions<Real>& questions,
                              std::span<const int32_t> trees);

}  // namespace qwyc
