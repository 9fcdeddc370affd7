// What is told about rows after they were decided.
#pragma once

#include "core/policy.hpp"
#include "core/rows_view.hpp"

namespace qwyc {

// A monitor's interest in a quitter. Called from any thread, with or without Python's lock.
class Watcher {
  public:
    virtual ~Watcher() = default;

    // Rows and what was decided about them, on so many threads.
    virtual void see(const RowsView<float>& rows, const DecisionsOut& decided, int threads) = 0;
    virtual void see(const RowsView<double>& rows, const DecisionsOut& decided, int threads) = 0;
};

}  // namespace qwyc
