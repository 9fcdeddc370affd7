#include "core/combinations.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

#include "core/scratch.hpp"

namespace qwyc {

namespace {

constexpr uint64_t kFactor = 0x4906BA494954CB65;  // of the keys

uint64_t joined(uint64_t key, uint64_t part) {
    return kFactor * (key + kFactor * part);
}

void require(bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
}

void check_offsets(std::span<const int64_t> begin, size_t n, const char* message) {
    require(!begin.empty() && begin.front() == 0 && begin.back() == static_cast<int64_t>(n),
            message);
    for (size_t i = 1; i < begin.size(); ++i) require(begin[i - 1] <= begin[i], message);
}

template <class T>
std::vector<T> copied(std::span<const T> values) {
    return {values.begin(), values.end()};
}

// Keys differ in their high bits as well as in their low ones.
uint64_t slot_of(uint64_t key, uint64_t mask) {
    return (key ^ (key >> 32)) & mask;
}

}  // namespace

Combinations::Combinations(const CombinationArrays& a)
    : n_features_(static_cast<int64_t>(a.is_category.size())),
      code_begin_(copied(a.code_begin)),
      part_begin_(copied(a.part_begin)),
      key_begin_(copied(a.key_begin)),
      value_begin_(copied(a.value_begin)),
      code_hash_(copied(a.code_hash)),
      is_category_(copied(a.is_category)),
      part_kind_(copied(a.part_kind)),
      part_feature_(copied(a.part_feature)),
      table_of_(copied(a.table_of)),
      column_table_(copied(a.column_table)),
      part_value_(copied(a.part_value)),
      key_(copied(a.key)),
      value_(copied(a.value)) {
    check_offsets(a.code_begin, a.code_hash.size(), "the codes of categories are not sound");
    require(a.code_begin.size() == a.is_category.size() + 1,
            "the codes of categories are those of other features");
    check_offsets(a.part_begin, a.part_kind.size(), "the parts of combinations are not valid");
    require(
        a.part_feature.size() == a.part_kind.size() && a.part_value.size() == a.part_kind.size(),
        "the parts of combinations differ in length");
    for (size_t i = 0; i < part_kind_.size(); ++i) {
        const int32_t feature = part_feature_[i];
        require(part_kind_[i] < kPartKinds, "a part of a combination is of an unknown kind");
        require(feature >= 0 && feature < n_features_, "a combination has an unknown feature");
        const auto kind = static_cast<PartKind>(part_kind_[i]);
        const bool category = kind == PartKind::kCategory || kind == PartKind::kIsCategory;
        require(category == (is_category_[feature] != 0),
                "a combination takes categories for numbers, or numbers for categories");
        if (kind == PartKind::kIsCategory)
            require(part_value_[i] >= 0 && part_value_[i] <= 4294967295.0,
                    "a hash is out of range");
    }
    check_offsets(a.key_begin, a.key.size(), "the tables of combinations are not valid");
    require(a.key_begin.size() == a.table_of.size() + 1,
            "the tables of combinations differ in length");
    const auto n_combinations = static_cast<int64_t>(part_begin_.size()) - 1;
    slot_begin_.push_back(0);
    for (size_t t = 0; t < table_of_.size(); ++t) {
        require(table_of_[t] >= 0 && table_of_[t] < n_combinations,
                "a table is of an unknown combination");
        const int64_t n = key_begin_[t + 1] - key_begin_[t], first = key_begin_[t];
        const uint64_t slots = std::bit_ceil(static_cast<uint64_t>(2 * n + 1));
        slot_.resize(slot_.size() + slots, -1);
        int64_t* const own = slot_.data() + slot_begin_.back();
        for (int64_t i = 0; i < n; ++i) {
            require(i == 0 || key_[first + i - 1] < key_[first + i],
                    "the keys of a table do not rise");
            uint64_t at = slot_of(key_[first + i], slots - 1);
            while (own[at] >= 0) at = (at + 1) & (slots - 1);
            own[at] = i;
        }
        slot_begin_.push_back(static_cast<int64_t>(slot_.size()));
    }
    check_offsets(a.value_begin, a.value.size(), "the statistics of combinations are not valid");
    require(a.value_begin.size() == a.column_table.size() + 1,
            "the statistics of combinations differ in length");
    for (size_t d = 0; d < column_table_.size(); ++d) {
        const int32_t t = column_table_[d];
        require(t >= 0 && t < static_cast<int32_t>(table_of_.size()),
                "a statistic is of an unknown table");
        require(value_begin_[d + 1] - value_begin_[d] == key_begin_[t + 1] - key_begin_[t] + 1,
                "a statistic must have a number for each key of its table, and one more");
    }
}

uint32_t Combinations::hash_of(int64_t feature, double cell) const {
    if (cell >= kFirstHash) return static_cast<uint32_t>(static_cast<uint64_t>(cell - kFirstHash));
    const int64_t n = code_begin_[feature + 1] - code_begin_[feature];
    // NaN, -1 and codes that do not exist: no category at all.
    if (!(cell >= 0 && cell < static_cast<double>(n))) return 0;
    return code_hash_[code_begin_[feature] + static_cast<int64_t>(cell)];
}

void Combinations::keys_of(int64_t combination, const double* rows, int64_t n,
                           const uint32_t* hashes, uint64_t* keys) const {
    std::fill_n(keys, n, uint64_t{0});
    for (int64_t i = part_begin_[combination]; i < part_begin_[combination + 1]; ++i) {
        const int32_t feature = part_feature_[i];
        const double* const cell = rows + feature;  // of the first row
        const uint32_t* const hash = hashes + feature * kRows;
        const auto border = static_cast<float>(part_value_[i]);
        switch (static_cast<PartKind>(part_kind_[i])) {
            case PartKind::kCategory:  // with its sign, as a 32-bit integer
                for (int64_t r = 0; r < n; ++r) {
                    const int64_t part = static_cast<int32_t>(hash[r]);
                    keys[r] = joined(keys[r], static_cast<uint64_t>(part));
                }
                break;
            case PartKind::kAbove:
                for (int64_t r = 0; r < n; ++r)
                    keys[r] = joined(keys[r], static_cast<float>(cell[r * n_features_]) > border);
                break;
            case PartKind::kAboveOrMissing:
                for (int64_t r = 0; r < n; ++r)
                    keys[r] =
                        joined(keys[r], !(static_cast<float>(cell[r * n_features_]) <= border));
                break;
            case PartKind::kIsCategory:
                for (int64_t r = 0; r < n; ++r)
                    keys[r] = joined(keys[r], hash[r] == static_cast<uint32_t>(part_value_[i]));
                break;
        }
    }
}

int64_t Combinations::find(int64_t table, uint64_t key) const {
    const int64_t begin = slot_begin_[table];
    const uint64_t mask = static_cast<uint64_t>(slot_begin_[table + 1] - begin) - 1;
    for (uint64_t at = slot_of(key, mask);; at = (at + 1) & mask) {
        const int64_t place = slot_[begin + static_cast<int64_t>(at)];
        if (place < 0 || key_[key_begin_[table] + place] == key) return place;
    }
}

void Combinations::expand(const double* rows, int64_t n, float* out) const {
    thread_local Buffer<uint32_t> hashes;  // by feature
    thread_local Buffer<int64_t> places;   // of the rows' keys in each table
    uint32_t* const hash = hashes.of(static_cast<size_t>(n_features_ * kRows));
    int64_t* const place = places.of(table_of_.size() * kRows);
    for (int64_t begin = 0; begin < n; begin += kRows)
        expand_some(rows + begin * n_features_, std::min(kRows, n - begin), hash, place,
                    out + begin * n_columns());
}

void Combinations::expand_some(const double* rows, int64_t n, uint32_t* hashes, int64_t* places,
                               float* out) const {
    const int64_t width = n_columns();
    for (int64_t j = 0; j < n_features_; ++j)
        for (int64_t r = 0; r < n; ++r) {
            const double cell = rows[r * n_features_ + j];
            if (is_category_[j]) hashes[j * kRows + r] = hash_of(j, cell);
            const bool no_code = is_category_[j] && !(cell < kFirstHash);
            out[r * width + j] = no_code ? -1.0F : static_cast<float>(cell);
        }
    std::array<uint64_t, kRows> keys;
    for (size_t t = 0; t < table_of_.size(); ++t) {
        // Tables of one combination mostly follow each other.
        if (t == 0 || table_of_[t] != table_of_[t - 1])
            keys_of(table_of_[t], rows, n, hashes, keys.data());
        for (int64_t r = 0; r < n; ++r)
            places[t * kRows + r] = find(static_cast<int64_t>(t), keys[r]);
    }
    for (size_t d = 0; d < column_table_.size(); ++d) {
        const int64_t* const place = places + column_table_[d] * kRows;
        const float* const value = value_.data() + value_begin_[d];
        const int64_t other = value_begin_[d + 1] - value_begin_[d] - 1;
        for (int64_t r = 0; r < n; ++r)
            out[r * width + n_features_ + static_cast<int64_t>(d)] =
                value[place[r] < 0 ? other : place[r]];
    }
}

}  // namespace qwyc
