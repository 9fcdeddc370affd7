// A table whose columns belong to Python objects or Arrow.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/parallel.hpp"
#include "core/table.hpp"
#include "core/table_block.hpp"
#include "python/arrays.hpp"
#include "python/arrow.hpp"

namespace qwyc {

// What all tables for one model have in common.
struct TableShape {
    std::vector<Checks> checks;  // by feature
    bool single;                 // values become float32; otherwise float64
};

class HeldTable : public Table {
  public:
    HeldTable(int64_t n_rows, const TableShape& shape)
        : Table(n_rows, static_cast<int64_t>(shape.checks.size())), single(shape.single) {
        for (size_t j = 0; j < shape.checks.size(); ++j)
            column(static_cast<int64_t>(j)).checks = shape.checks[j];
    }

    const bool single;
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
    // until all were passed. Rows are float or double, whichever needs fewer conversions: engines
    // take both, and give the same answers where no value changes. Returns false where a value is
    // refused.
    template <class Use>
    bool in_blocks(int threads, const Use& use) const {
        const auto narrow = TableLayout::of<float>(*this, threads),
                   wide = TableLayout::of<double>(*this, threads);
        if (single ? !wide.keeps_all || wide.found <= narrow.found : narrow.keeps_all)
            return in_blocks<float>(narrow, threads, use);
        return in_blocks<double>(wide, threads, use);
    }

  private:
    template <class In, class Use>
    bool in_blocks(const TableLayout& layout, int threads, const Use& use) const {
        std::atomic<bool> refused{is_refused()};
        parallel_for(n_rows(), layout.rows_at_once, threads, [&](int64_t begin, int64_t end) {
            if (refused) return;
            TableBlock<In> block(*this, begin, end);
            if (block.is_refused())
                refused = true;
            else
                use(block.rows(), begin);
        });
        return !refused;
    }

    static constexpr int64_t kRowsAtOnce = 1 << 14;
};

}  // namespace qwyc
