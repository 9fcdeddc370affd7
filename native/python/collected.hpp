// Python's garbage collector for classes that hold Python objects, which may refer to the owner.
#pragma once

#include <nanobind/nanobind.h>

namespace qwyc {

namespace nb = nanobind;

// Self::held() gives pointers to the Python objects that an instance refers to.
template <class Self>
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const nb::object* held : nb::inst_ptr<Self>(self)->held()) Py_VISIT(held->ptr());
    return 0;
}
template <class Self>
int clear(PyObject* self) {
    for (nb::object* held : nb::inst_ptr<Self>(self)->held()) held->reset();
    return 0;
}
template <class Self>
inline PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<Self>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear<Self>)},
                                  {0, nullptr}};

}  // namespace qwyc
