#include "core/categories.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace qwyc {

namespace {

template <class Visit>
void each_code(CategorySet set, Visit visit) {
    for (size_t word = 0; word < set.size(); ++word)
        for (uint32_t bits = set[word]; bits != 0; bits &= bits - 1)
            visit(static_cast<int32_t>(32 * word + std::countr_zero(bits)));
}

// A class per code, (n_codes + 1,), where the last one stands for "in no set".
struct Partition {
    std::vector<int32_t> class_of;
    int32_t n_classes;
};

// Each set splits the classes that it holds in part; only its own codes are visited. Stops where
// there are more classes than a byte counts.
Partition partition(const std::vector<CategorySet>& sets, int32_t n_codes) {
    std::vector<int32_t> cls(n_codes + 1, 0);
    std::vector<int32_t> size{n_codes + 1}, held, renamed;
    for (const CategorySet& set : sets) {
        held.assign(size.size(), 0);
        each_code(set, [&](int32_t code) { ++held[cls[code]]; });
        renamed.assign(size.size(), -1);
        for (size_t c = 0, known = renamed.size(); c < known; ++c)
            if (held[c] > 0 && held[c] < size[c]) {
                renamed[c] = static_cast<int32_t>(size.size());
                size.push_back(held[c]);
                size[c] -= held[c];
            }
        each_code(set, [&](int32_t code) {
            if (renamed[cls[code]] >= 0) cls[code] = renamed[cls[code]];
        });
        if (size.size() > kNoClass) break;
    }
    return {std::move(cls), static_cast<int32_t>(size.size())};
}

}  // namespace

CategoryTables make_category_tables(std::map<int32_t, std::vector<CategorySet>> sets,
                                    int64_t max_bytes) {
    std::vector<std::pair<int32_t, int32_t>> order;  // (codes, feature)
    for (auto& [feature, of_feature] : sets) {
        size_t words = 0;
        for (CategorySet& set : of_feature) {
            set = set.first(std::min<size_t>(set.size(), kMaxCategoryCodes / 32));
            words = std::max(words, set.size());
        }
        order.emplace_back(static_cast<int32_t>(32 * words), feature);
    }
    std::sort(order.begin(), order.end());
    CategoryTables tables;
    for (const auto& [n_codes, feature] : order) {
        const auto begin = static_cast<int64_t>(tables.class_of.size());
        if (n_codes > max_bytes - begin) break;  // later tables are as large or larger
        std::vector<CategorySet>& distinct = sets[feature];
        std::sort(distinct.begin(), distinct.end(), [](CategorySet a, CategorySet b) {
            return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
        });
        const auto equal = [](CategorySet a, CategorySet b) { return std::ranges::equal(a, b); };
        distinct.erase(std::unique(distinct.begin(), distinct.end(), equal), distinct.end());
        const auto [cls, n_classes] = partition(distinct, n_codes);
        if (n_classes > kNoClass) continue;
        CategoryTables::Feature& classes = tables.features[feature];
        classes.begin = begin;
        classes.count = n_codes;
        classes.example.assign(n_classes, -1);
        const int32_t none = cls[n_codes];
        tables.class_of.reserve(tables.class_of.size() + n_codes);
        for (int32_t code = 0; code < n_codes; ++code) {
            tables.class_of.push_back(
                static_cast<uint8_t>(cls[code] == none ? kNoClass : cls[code]));
            if (cls[code] != none) classes.example[cls[code]] = code;
        }
    }
    return tables;
}

}  // namespace qwyc
