// The different splits of a forest's small trees. Trees ask the same question many times, so it is
// answered once for each row.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/categories.hpp"
#include "core/forest.hpp"

namespace qwyc {

inline constexpr int32_t kMaxMaskedLeaves = 64;   // of a tree that is evaluated on masks,
inline constexpr int32_t kMaxLargeLeaves = 2048;  // and in full scores

// What a question asks of a row's value. The answer yes sends the row right.
enum class Asks : uint8_t {
    kAtLeast,           // x >= cut; a missing value answers no
    kAtLeastOrMissing,  // x >= cut; a missing value answers yes
    kMissing,           // whether it is missing
    kNever,             // always no
    kSet,               // whether the category, or "missing", is in a set
};

template <class Real>
struct Question {
    int32_t feature;
    bool zero_is_missing;
    Asks asks;
    Real cut;
    int32_t set;  // in Questions::sets

    bool operator==(const Question&) const = default;
    auto operator<=>(const Question&) const = default;
};

// 256 bits, one for each class of categories: whether it goes right.
using ClassSet = std::array<uint8_t, 32>;

template <class Real>
struct Questions {
    explicit Questions(const Forest<Real>& forest, int64_t max_category_bytes = kMaxCategoryBytes,
                       int32_t max_leaves = kMaxMaskedLeaves);

    std::vector<Question<Real>> all;  // sorted, each once
    std::vector<int32_t> of_node;     // (nodes,) index into `all`; -1 in trees that are not masked
    std::vector<ClassSet> sets;
    CategoryTables categories;
    std::vector<uint8_t> masked;  // (T,) whether a tree is evaluated on masks

    std::span<const int32_t> of_tree(const Forest<Real>& forest, int32_t tree) const {
        const auto [begin, end] = forest.nodes_of(tree);
        return {of_node.data() + begin, of_node.data() + end};
    }
};

extern template struct Questions<float>;
extern template struct Questions<double>;

}  // namespace qwyc
