// A sparse matrix whose arrays belong to Python objects.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/sparse_rows.hpp"
#include "python/arrays.hpp"

namespace qwyc {

class HeldSparse {
  public:
    SparseRows rows;
    std::shared_ptr<const std::vector<int64_t>> begin;  // a copy, which nobody changes
    nb::object column, value;                           // owners

    int64_t n_rows() const { return rows.n_rows(); }

    HeldSparse part(int64_t from, int64_t to) const {
        HeldSparse some(*this);
        some.rows = rows.part(from, to);
        return some;
    }

    void check(const ColumnSlots& slots, int64_t n_features) const {
        require(slots.n_columns() == rows.n_columns, "rows must have one column per feature");
        require(slots.n_slots() == n_features, "base models must be those of the columns in use");
    }
};

}  // namespace qwyc
