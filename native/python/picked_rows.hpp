// Copies of the rows that a sampler picks, with their decisions, for a check later.
#pragma once

#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/row_sampler.hpp"
#include "python/arrays.hpp"

namespace qwyc {

// Threads may add rows at any time. Numbers are kept as double, which holds floats exactly.
class PickedRows {
  public:
    PickedRows(double rate, uint64_t seed, int64_t n_features, int64_t most)
        : sampler(rate, seed), n_features_(n_features), most_(most) {
        require(n_features >= 0 && most > 0, "there must be room for rows");
    }

    // Keeps copies of those rows that are picked. They were decided, and `sampler.take` said that
    // `begin` rows came before them. True when `most` rows wait.
    template <class In>
    bool add(int64_t begin, const Rows<In>& rows, const Vector<uint8_t>& decided,
             const Vector<int32_t>& steps) {
        check(rows, decided, steps);
        return keep(rows, decided, steps,
                    sampler.claim(begin, static_cast<int64_t>(rows.shape(0))));
    }

    // Keeps copies of rows that were picked already.
    template <class In>
    bool keep_all(const Rows<In>& rows, const Vector<uint8_t>& decided,
                  const Vector<int32_t>& steps) {
        check(rows, decided, steps);
        std::vector<int64_t> all(rows.shape(0));
        std::iota(all.begin(), all.end(), 0);
        return keep(rows, decided, steps, all);
    }

    // Keeps a copy of one row that was picked.
    bool add_one(const std::vector<double>& row, uint8_t decided, int32_t steps) {
        const std::lock_guard<std::mutex> guard(lock_);
        append(row.data(), decided, steps);
        return is_full();
    }

    // The waiting rows, (n, n_features), and their decisions, (n,) each. They wait no longer.
    std::tuple<OutMatrix<double>, OutVector<uint8_t>, OutVector<int32_t>> drain() {
        std::vector<double> rows;
        std::vector<uint8_t> decided;
        std::vector<int32_t> steps;
        {
            const std::lock_guard<std::mutex> guard(lock_);
            rows.swap(rows_);
            decided.swap(decided_);
            steps.swap(steps_);
        }
        double* data;
        auto matrix = new_matrix<double>(static_cast<int64_t>(steps.size()), n_features_, data);
        std::copy(rows.begin(), rows.end(), data);
        return {std::move(matrix), to_numpy(decided), to_numpy(steps)};
    }

    RowSampler sampler;

  private:
    template <class In>
    void check(const Rows<In>& rows, const Vector<uint8_t>& decided,
               const Vector<int32_t>& steps) const {
        require(static_cast<int64_t>(rows.shape(1)) == n_features_ &&
                    rows.shape(0) == decided.shape(0) && rows.shape(0) == steps.shape(0),
                "rows must have one column per feature, and one decision each");
    }
    template <class In>
    bool keep(const Rows<In>& rows, const Vector<uint8_t>& decided, const Vector<int32_t>& steps,
              const std::vector<int64_t>& picked) {
        const RowsView<In> all = view(rows);
        std::vector<In> row(n_features_);
        const std::lock_guard<std::mutex> guard(lock_);
        for (const int64_t i : picked) {
            copy_rows(all.part(i, i + 1), row.data());
            append(row.data(), decided.data()[i], steps.data()[i]);
        }
        return is_full();
    }
    template <class In>
    void append(const In* row, uint8_t decided, int32_t steps) {
        rows_.insert(rows_.end(), row, row + n_features_);
        decided_.push_back(decided);
        steps_.push_back(steps);
    }
    bool is_full() const { return static_cast<int64_t>(steps_.size()) >= most_; }

    const int64_t n_features_, most_;
    std::mutex lock_;  // of what follows
    std::vector<double> rows_;
    std::vector<uint8_t> decided_;
    std::vector<int32_t> steps_;
};

}  // namespace qwyc
