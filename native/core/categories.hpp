// Category codes as classes of one byte: codes that no split of a feature tells apart are one
// class.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace qwyc {

inline constexpr uint8_t kNoClass = 254, kMissingClass = 255;  // in no set; a missing value

// Codes from here on are in no set: float32 could not tell them apart.
inline constexpr int32_t kMaxCategoryCodes = 1 << 24;

// Bytes that the class tables of all features take together. A model file of a few kilobytes can
// ask for 2^24 bytes per feature, so the sum is checked before anything is allocated.
inline constexpr int64_t kMaxCategoryBytes = int64_t{64} << 20;

using CategorySet = std::span<const uint32_t>;  // bit per code, 32 codes a word

struct CategoryTables {
    struct Feature {
        int64_t begin = 0;             // of the feature's codes in class_of
        int32_t count = 0;             // codes from here on are in no set
        std::vector<int32_t> example;  // by class: a code of that class, or -1
    };
    std::map<int32_t, Feature> features;  // by feature
    std::vector<uint8_t> class_of;        // class of each code, feature after feature
};

// The tables of all features whose classes fit a byte, smallest table first until `max_bytes` are
// taken. Trees that split on the other features by category are walked instead.
// sets: by feature, those of all splits; the words that they refer to must outlive the call.
CategoryTables make_category_tables(std::map<int32_t, std::vector<CategorySet>> sets,
                                    int64_t max_bytes = kMaxCategoryBytes);

}  // namespace qwyc
