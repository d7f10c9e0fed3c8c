/* The parts of the extension module. */
#ifndef HK_PY_MODULE_H
#define HK_PY_MODULE_H

#include <Python.h>

extern PyMethodDef hk_py_scope_methods[];

#endif
