// What the functions that fit have in common: checks of costs, and reports of progress.
#pragma once

#include "fit/search.hpp"
#include "python/arrays.hpp"

namespace qwyc {

inline void check_needs(const CostsView& costs) {
    const auto begin = costs.need_begin;
    require(
        begin.size() == costs.own.size() + 1 && begin.front() == 0 &&
            begin.back() == static_cast<int64_t>(costs.need.size()),
        "need_begin must have one entry more than there are base models, from 0 to all of need");
    for (size_t t = 0; t < costs.own.size(); ++t)
        require(begin[t] <= begin[t + 1], "need_begin must never fall");
    for (int32_t part : costs.need)
        require(part >= 0 && part < static_cast<int64_t>(costs.parts.size()),
                "need must name parts");
}

// What a fit calls after each step: Python's function, unless Ctrl-C was pressed.
inline Progress reporting(const nb::callable& progress) {
    return [&progress](int64_t done) {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        progress(done);
    };
}

// Fitting and policies for more than two classes.
void bind_leads(nb::module_& m);

// Outputs within a tolerance.
void bind_tolerance(nb::module_& m);

}  // namespace qwyc
