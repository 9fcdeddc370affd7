// Rows put in order by the classes that are left for them, so that rows with the same classes are
// evaluated together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace qwyc {

// A set of classes: bit k % 64 for class k, so a set may have more classes than were put into it.
using ClassBits = uint64_t;
constexpr ClassBits bit_of_class(int32_t k) {
    return ClassBits{1} << (k & 63);
}

class RowsByClasses {
  public:
    // Rows from here on are added to an empty list of up to `most` rows.
    void clear(int32_t most) {
        n_ = 0;
        if (static_cast<size_t>(most) > row_.size())
            row_.resize(most), set_of_.resize(most), sorted_.resize(most);
        std::fill_n(slot_, kSlots, int16_t{-1});
        set_.clear(), count_.clear();
    }

    // Rows 0 to n, for all of which the same classes are left.
    void begin_with(int32_t n, ClassBits classes) {
        clear(n);
        for (int32_t i = 0; i < n; ++i) row_[i] = i;
        set_.push_back(classes), count_.push_back(n);
        n_ = n;
    }

    void add(int32_t row, ClassBits classes) {
        if (last_ >= static_cast<int32_t>(set_.size()) || set_[last_] != classes)
            last_ = find(classes);
        ++count_[last_];
        set_of_[n_] = static_cast<int16_t>(last_);
        row_[n_++] = row;
    }

    int32_t size() const { return n_; }

    // Sorts the rows. They stay where they are until `clear`.
    const int32_t* sort() {
        order_.resize(set_.size());
        for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int16_t>(i);
        std::sort(order_.begin(), order_.end(), [&](auto a, auto b) { return set_[a] < set_[b]; });
        next_ = 0, taken_ = 0;
        if (order_.size() <= 1) return row_.data();
        begin_.resize(set_.size());
        int32_t at = 0;
        for (int16_t s : order_) begin_[s] = at, at += count_[s];
        for (int32_t i = 0; i < n_; ++i) sorted_[begin_[set_of_[i]]++] = row_[i];
        return sorted_.data();
    }

    // The next rows to evaluate together, at most `most`, and the classes of any of them. Rows with
    // other classes come in between only where there would be few otherwise.
    int32_t next(int32_t most, ClassBits& classes) {
        classes = 0;
        int32_t n = 0;
        for (; next_ < order_.size() && n < most; ++next_, taken_ = 0) {
            const int16_t s = order_[next_];
            if (n >= kEnough * most && (set_[s] & ~classes) != 0) break;
            classes |= set_[s];
            const int32_t more = std::min(count_[s] - taken_, most - n);
            n += more, taken_ += more;
            if (taken_ < count_[s]) break;
        }
        return n;
    }

  private:
    static constexpr int32_t kSlots = 512, kMostSets = 256;
    static constexpr double kEnough = 0.375;

    // The number of a set. Sets beyond kMostSets share the last number.
    int32_t find(ClassBits classes) {
        for (auto at = static_cast<size_t>(classes * 0x9e3779b97f4a7c15u >> 55);; ++at) {
            int16_t& number = slot_[at % kSlots];
            if (number >= 0 && set_[number] == classes) return number;
            if (number >= 0) continue;
            if (set_.size() == kMostSets) {
                set_.back() |= classes;
                return kMostSets - 1;
            }
            number = static_cast<int16_t>(set_.size());
            set_.push_back(classes), count_.push_back(0);
            return number;
        }
    }

    int32_t n_ = 0, last_ = 0;
    std::vector<int32_t> row_, sorted_;
    std::vector<int16_t> set_of_;  // by row
    std::vector<ClassBits> set_;
    std::vector<int32_t> count_, begin_;  // rows of each set
    std::vector<int16_t> order_;          // sets
    int16_t slot_[kSlots];                // sets by hash
    size_t next_ = 0;                     // in order_
    int32_t taken_ = 0;                   // rows of that set
};

}  // namespace qwyc
