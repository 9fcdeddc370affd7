// Columns that are computed from several others: CatBoost's statistics (CTR) of combinations of
// categories. A combination has a 64-bit key, and a table holds a number for each known key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qwyc {

// What a combination is made of, part by part.
enum class PartKind : uint8_t {
    kCategory = 0,        // the hash of a category
    kAbove = 1,           // whether a number is above a border; NaN is not
    kAboveOrMissing = 2,  // the same, and NaN is
    kIsCategory = 3,      // whether a category has a certain hash
};

inline constexpr int kPartKinds = 4;

// In a column of categories, a cell is the position of its hash among those that are known; or
// kFirstHash + the hash; or -1 where the hash does not matter.
inline constexpr double kFirstHash = 16777216.0;

struct CombinationArrays {
    std::span<const int64_t> code_begin;    // (n_features + 1,)
    std::span<const uint32_t> code_hash;    // the hash of each code of each feature
    std::span<const uint8_t> is_category;   // (n_features,)
    std::span<const int64_t> part_begin;    // (P + 1,) of each combination
    std::span<const uint8_t> part_kind;     // PartKind
    std::span<const int32_t> part_feature;  // which column
    std::span<const double> part_value;     // a border or a hash
    std::span<const int32_t> table_of;      // (M,) the combination of each table
    std::span<const int64_t> key_begin;     // (M + 1,)
    std::span<const uint64_t> key;          // rising within a table
    std::span<const int32_t> column_table;  // (D,) the table of each new column
    std::span<const int64_t> value_begin;   // (D + 1,)
    std::span<const float> value;           // by key, and one more for all that are not known
};

class Combinations {
  public:
    // Copies the arrays; throws std::invalid_argument where they are not sound.
    explicit Combinations(const CombinationArrays& arrays);

    int64_t n_features() const { return n_features_; }
    int64_t n_columns() const { return n_features_ + static_cast<int64_t>(column_table_.size()); }

    // Rows (n, n_features), in C order, as float32 with the new columns after the others: (n,
    // n_columns). Categories keep their codes; those that have none become -1.
    void expand(const double* rows, int64_t n, float* out) const;

  private:
    static constexpr int64_t kRows = 64;  // that are looked up together

    uint32_t hash_of(int64_t feature, double cell) const;
    // The keys of up to kRows rows, whose hashes lie by feature.
    void keys_of(int64_t combination, const double* rows, int64_t n, const uint32_t* hashes,
                 uint64_t* keys) const;
    void expand_some(const double* rows, int64_t n, uint32_t* hashes, int64_t* places,
                     float* out) const;
    int64_t find(int64_t table, uint64_t key) const;  // -1: not known

    int64_t n_features_;
    std::vector<int64_t> code_begin_, part_begin_, key_begin_, value_begin_;
    std::vector<uint32_t> code_hash_;
    std::vector<uint8_t> is_category_, part_kind_;
    std::vector<int32_t> part_feature_, table_of_, column_table_;
    std::vector<double> part_value_;
    std::vector<uint64_t> key_;
    std::vector<float> value_;
    // Open addressing, a power of two of slots for each table: a key's place among those of its
    // table, or -1.
    std::vector<int64_t> slot_begin_;
    std::vector<int64_t> slot_;
};

}  // namespace qwyc
