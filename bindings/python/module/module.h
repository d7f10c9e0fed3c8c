/* The parts of the extension module.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * module/ is a library of its own, compiled for one version of Python with Python.h, which the hook
 * never sees. It knows what the hook exports: functions marked HKP_API. */
#ifndef HKP_MODULE_H
#define HKP_MODULE_H

#include <Python.h>

#include "base/out.h"

/* A function of Python's that calls another one and returns None. */
#define HKP_CALLS(name, function)                                                                            \
    static PyObject *name(PyObject *self, PyObject *unused)                                                  \
    {                                                                                                        \
        (void)self, (void)unused;                                                                            \
        function();                                                                                          \
        Py_RETURN_NONE;                                                                                      \
    }

extern PyMethodDef hkp_scope_methods[], hkp_profile_methods[];

/* limit.c */
int hkp_module_limit_begin(void); /* 0, or -1 with an error set */
PyObject *hkp_module_limit(PyObject *module, PyObject *args);
/* text.c */
PyObject *hkp_module_out(hkp_out *out); /* what was written, as text, or NULL with an error set; closes it */
PyObject *hkp_module_resident(PyObject *module, PyObject *unused);
PyObject *hkp_module_text(PyObject *module, PyObject *args);

#endif
