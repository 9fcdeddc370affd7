// The Python module.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "core/kernels.hpp"
#include "python/arrays.hpp"

using namespace nanobind::literals;

NB_MODULE(_native, m) {
    // When the interpreter ends, nanobind reports instances that are still alive as leaks. Which
    // are depends on who else holds modules: a schema in a global of a module, for example.
    // Programs that do nothing wrong would print pages. tests/rows/test_native_table_state.py and
    // the tests under sanitizers (native/tests) find real leaks.
    nanobind::set_leak_warnings(false);
    m.doc() = "The native core of qwyc. Use the functions of the package instead.";
    qwyc::bind_forest(m);
    qwyc::bind_lattices(m);
    qwyc::bind_tables(m);
    qwyc::bind_quitter(m);
    qwyc::bind_class_trees(m);
    qwyc::bind_outputs(m);
    qwyc::bind_monitoring(m);
    qwyc::bind_one_row(m);
    qwyc::bind_plain_arrays(m);
    qwyc::bind_fitting(m);
    m.def("available_isas", &qwyc::available_isas,
          "Instruction sets that this machine can evaluate with, best first.");
    m.def(
        "exp_f32", [](float x) { return std::exp(x); }, "x"_a,
        "e to the x in float32, as the C library rounds it.");
    m.def(
        "log_f32", [](float x) { return std::log(x); }, "x"_a,
        "The natural logarithm in float32, as the C library rounds it.");
}
