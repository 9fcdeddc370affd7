// A table whose columns belong to Python objects or Arrow.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/parallel.hpp"
#include "core/table.hpp"
#include "python/arrays.hpp"
#include "python/arrow.hpp"

namespace qwyc {

// What all tables for one model have in common.
struct TableShape {
    std::vector<Checks> checks;  // by feature
};

class HeldTable : public Table {
  public:
    HeldTable(int64_t n_rows, const TableShape& shape)
        : Table(n_rows, static_cast<int64_t>(shape.checks.size())) {
        for (size_t j = 0; j < shape.checks.size(); ++j)
            column(static_cast<int64_t>(j)).checks = shape.checks[j];
    }

    std::vector<nb::object> owners;  // of memory that columns refer to
    std::vector<Batch> batches;

    // All rows, (n_features, n). Returns false where a value is refused.
    template <class Out>
    bool read_all(Out* out, int threads) const {
        std::atomic<bool> refused{false};
        parallel_for(n_rows(), kRowsAtOnce, threads, [&](int64_t begin, int64_t end) {
            if (!refused && !read(begin, end, out + begin, n_rows())) refused = true;
        });
        return !refused;
    }

    // Calls use(rows, begin) with a view of some rows at a time, from several threads at once,
    // until all were passed. Returns false where a value is refused.
    template <class Out, class Use>
    bool in_blocks(int threads, const Use& use) const {
        std::atomic<bool> refused{false};
        const int64_t block = rows_to_copy(n_rows(), n_features(), sizeof(Out), threads);
        std::vector<Out> copy;  // of each thread
        parallel_for(n_rows(), block, threads, [&, copy](int64_t begin, int64_t end) mutable {
            const int64_t n = end - begin, stride = std::min(block, n_rows());
            copy.resize(stride * n_features());
            if (refused || !read(begin, end, copy.data(), stride)) {
                refused = true;
                return;
            }
            use(RowsView<Out>{copy.data(), n, n_features(), 1, stride}, begin);
        });
        return !refused;
    }

  private:
    static constexpr int64_t kRowsAtOnce = 1 << 14;
};

}  // namespace qwyc
