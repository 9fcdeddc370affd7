// Classes that hold Python objects, and what the garbage collector must know of them.
#pragma once

#include <vector>

#include "python/arrays.hpp"

namespace qwyc {

// Type slots for Python's garbage collector, for classes whose `held()` names the objects that they
// hold: callables, which usually refer to the owner.
template <class Self>
inline int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const nb::object* held : nb::inst_ptr<Self>(self)->held()) Py_VISIT(held->ptr());
    return 0;
}
template <class Self>
inline int clear(PyObject* self) {
    for (nb::object* held : nb::inst_ptr<Self>(self)->held()) held->reset();
    return 0;
}
template <class Self>
inline PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<Self>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear<Self>)},
                                  {0, nullptr}};

}  // namespace qwyc
