/* hakmem._hakmem: the hook's functions for Python. It is linked to libhakmem_pyhook.so, which the loader has
 * once in a process: preloaded, or loaded with this module. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "install.h"
#include "wrap.h"

static const char *const state_names[] = {"default", "replaced", "wrapped", "covered", "displaced"};

static PyObject *install(PyObject *self, PyObject *args)
{
    (void)self;
    int all, mode;
    const char *labels;
    if (!PyArg_ParseTuple(args, "pis", &all, &mode, &labels)) return NULL;
    return PyBool_FromLong(hk_py_install(all != 0, (hk_py_mode)mode, labels) == 0);
}

static PyObject *status(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hk_py_status s;
    hk_py_status_get(&s, true);
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:O,s:O,s:s,s:s}", "raw", state_names[s.state[HK_PY_RAW]], "mem",
                         state_names[s.state[HK_PY_MEM]], "obj", state_names[s.state[HK_PY_OBJ]], "arena",
                         state_names[s.state[HK_PY_ARENA]], "installed", s.installed ? Py_True : Py_False, "early",
                         s.early ? Py_True : Py_False, "labels", s.labels, "why", s.why);
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, NULL},
    {"status", status, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_hakmem", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__hakmem(void)
{
    return PyModuleDef_Init(&definition);
}
