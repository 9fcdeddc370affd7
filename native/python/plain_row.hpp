// One row of plain numbers from Python: a NumPy vector, or a list or tuple of Python's own numbers.
#pragma once

#include <cstdint>
#include <utility>

#include "python/few_rows.hpp"

namespace qwyc {

// Reads rows of n_features numbers. `plain_row` is the type `numpy.ndarray`; integers up to
// `max_exact_integer` are the same in any type that rows may have.
class PlainRow {
  public:
    PlainRow(int64_t n_features, nb::object plain_row, int64_t max_exact_integer)
        : n_features_(n_features),
          plain_row_(std::move(plain_row)),
          max_exact_integer_(max_exact_integer) {}

    // Whether `use`, called with the contiguous numbers of a row, took it. False for a row that is
    // not plain numbers.
    template <class Use>
    bool with_numbers(nb::handle row, const Use& use) const {
        // Subclasses, such as masked arrays, may hold more than numbers.
        if (row.type().is(plain_row_)) return with_array(row.ptr(), use);
        if (PyList_CheckExact(row.ptr()) || PyTuple_CheckExact(row.ptr()))
            return with_sequence(row.ptr(), use);
        return false;
    }

    // The Python object that it refers to.
    nb::object* held() { return &plain_row_; }

  private:
    template <class Use>
    bool with_array(PyObject* row, const Use& use) const {
        Py_buffer view;
        if (PyObject_GetBuffer(row, &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
            PyErr_Clear();
            return false;
        }
        const bool fits = view.ndim == 1 && view.shape[0] == n_features_ && view.itemsize != 0 &&
                          view.strides[0] % view.itemsize == 0 &&
                          reinterpret_cast<uintptr_t>(view.buf) % view.itemsize == 0;
        const char* format = fits && view.format ? view.format : "";
        const char type = format[0] != 0 && format[1] == 0 ? format[0] : 0;
        bool taken = false;
        if (type == 'f') taken = with_strided<float>(view, use);
        if (type == 'd') taken = with_strided<double>(view, use);
        PyBuffer_Release(&view);
        return taken;
    }

    template <class In, class Use>
    static bool with_strided(const Py_buffer& view, const Use& use) {
        const In* values = static_cast<const In*>(view.buf);
        const int64_t step = view.strides[0] / view.itemsize, n = view.shape[0];
        if (step == 1 || n < 2) return use(values);
        RowCopy<In> copy(n);
        for (int64_t j = 0; j < n; ++j) copy[j] = values[j * step];
        return use(static_cast<const In*>(copy.data()));
    }

    // A list or tuple of Python's own floats and integers.
    template <class Use>
    bool with_sequence(PyObject* row, const Use& use) const {
        const int64_t n = n_features_;
        if (PySequence_Fast_GET_SIZE(row) != n) return false;
        RowCopy<double> copy(n);
        for (int64_t j = 0; j < n; ++j)
            if (!read_item(row, j, copy[j])) return false;
        if (PySequence_Fast_GET_SIZE(row) != n) return false;
        return use(static_cast<const double*>(copy.data()));
    }

    // Entry j of a list or tuple; false where it is not a number, or the list has become shorter.
    // Without the GIL another thread may change a list at any time, so only a reference of our own
    // keeps its entry alive.
    bool read_item(PyObject* row, int64_t j, double& out) const {
#if defined(Py_GIL_DISABLED)  // Python 3.13 and later, which has PyList_GetItemRef
        if (PyList_CheckExact(row)) {
            const nb::object value = nb::steal(PyList_GetItemRef(row, j));
            if (!value.is_valid()) PyErr_Clear();
            return value.is_valid() && read_number(value.ptr(), out);
        }
#endif
        return read_number(PySequence_Fast_GET_ITEM(row, j), out);
    }

    // False where `value` is not a number, or is an integer that may be rounded on the way.
    bool read_number(PyObject* value, double& out) const {
        if (PyFloat_CheckExact(value)) {
            out = PyFloat_AS_DOUBLE(value);
            return true;
        }
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        out = static_cast<double>(whole);
        return !overflow && whole <= max_exact_integer_ && whole >= -max_exact_integer_;
    }

    int64_t n_features_;
    nb::object plain_row_;
    int64_t max_exact_integer_;
};

}  // namespace qwyc
