// A table whose columns belong to Python objects or Arrow.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
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

// Python's lock, if objects are read: while the calling thread has it, nobody else changes or frees
// them, and all threads of the call may read them.
class ObjectLock {
  public:
    explicit ObjectLock(bool has_objects) {
        if (has_objects) lock_.emplace();
    }

  private:
    std::optional<nb::gil_scoped_acquire> lock_;
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
    std::vector<std::shared_ptr<void>> written;  // memory of columns that were converted
    bool has_objects = false;                    // columns of Python objects

    // All rows, (n_features, n). Returns false where a value is refused.
    template <class Out>
    bool read_all(Out* out, int threads) const {
        const ObjectLock lock(has_objects);
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
        const ObjectLock lock(has_objects);
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

inline void check_feature(const HeldTable& table, int64_t feature) {
    require(feature >= 0 && feature < table.n_features(), "there is no such feature");
}

// Features whose columns an Arrow stream may hold, and the codes of their texts; null: numbers.
struct ArrowColumns {
    std::vector<int64_t> features;
    std::vector<std::shared_ptr<TextCodes>> texts;
};

// The codes of positions in a list of categories, and in the end that of a null.
struct PositionCodes {
    std::shared_ptr<std::vector<double>> codes;
    bool refuses;
};

// Sets the columns of an Arrow stream, one for each feature, or one only. Columns with `positions`
// are positions of categories. Returns the features whose columns have a type that is not read
// here; those have no column then.
std::vector<int64_t> add_arrow(HeldTable& table, const nb::handle& capsule,
                               const ArrowColumns& columns, bool one,
                               const std::vector<std::shared_ptr<PositionCodes>>& positions);

// Categories that are Python objects (pandas_columns.cpp), read when they are needed. Returns false
// where a value is neither text nor missing; the feature has no column then. Where unknown texts
// are refused, such a value may be refused too, later.
bool add_objects(HeldTable& table, int64_t feature, const nb::object& objects,
                 std::shared_ptr<TextCodes> texts);

// What features take of the columns of pandas frames, by the position of a column.
struct TakenColumns {
    // Categories that were looked at, which pandas' frames share: the type of arrays that hold them
    // and their pandas Index.
    struct Known {
        nb::object type, index;
        PositionCodes codes;
    };
    struct Of {
        int64_t feature;  // or -1: none
        bool numbers;     // takes NumPy's numbers
        bool objects;     // takes objects, whose texts have codes
        bool arrow;       // takes Arrow's text or numbers
        ArrowColumns column;
        // The last of them. It is replaced as a whole: a call goes on with the one that it found,
        // whatever other threads look at whenever it runs Python code.
        std::shared_ptr<const Known> known;
    };
    std::vector<Of> columns;
    nb::object arrow_types;  // a set: types of pandas' arrays that hold Arrow's
};

// The columns in the blocks of a pandas frame (pandas_columns.cpp) that need no conversion. Returns
// the other columns that are needed, and nothing if the blocks are not as they are known to be.
std::optional<nb::list> add_blocks(HeldTable& table, const nb::object& blocks,
                                   const TakenColumns& taken);

}  // namespace qwyc
