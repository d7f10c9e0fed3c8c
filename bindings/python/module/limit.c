/* Limits, and what is called back at the soft one. Both end with the Python that set them: another one may
 * begin in the process. */
#define PY_SSIZE_T_CLEAN
#include "module/module.h"

#include "heap/heap.h"
#include "hook/main_thread.h"

#include <stdatomic.h>

static PyObject *soft_callback; /* of the main interpreter: others may have another GIL */
static bool begun;
static atomic_bool limited; /* since this Python began */
static size_t hard_before;

static int call_soft(void *unused)
{
    (void)unused;
    if (!soft_callback) return 0;
    PyObject *callback = soft_callback;
    Py_INCREF(callback);
    PyObject *result = PyObject_CallNoArgs(callback);
    if (!result) PyErr_WriteUnraisable(callback);
    Py_XDECREF(result);
    Py_DECREF(callback);
    return 0;
}

/* Takes the reference. */
static void put_callback(PyObject *callback)
{
    PyObject *before = soft_callback;
    soft_callback = callback;
    hkp_soft_call(callback ? call_soft : NULL);
    Py_XDECREF(before);
}

/* ---- The end of Python --------------------------------------------------------------------------- */

static PyObject *drop_callback(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    put_callback(NULL);
    Py_RETURN_NONE;
}

static PyMethodDef drop_definition = {"hakmem_limit", drop_callback, METH_NOARGS, NULL};

/* Objects are gone: a callback that was set as late as that is nobody's. */
static void at_end(void)
{
    begun = false;
    soft_callback = NULL;
    hkp_soft_call(NULL);
    if (atomic_exchange(&limited, false)) hkp_limit(0, hard_before, NULL, NULL);
}

static void note_before(void)
{
    hak_stats stats = {.size = sizeof stats};
    if (!atomic_exchange(&limited, true)) hard_before = hkp_stats(&stats) == 0 ? stats.hard_limit : 0;
}

/* Registered when the module is imported, so that it runs after the program's own functions at exit. Once: a
 * program may import it again and again. */
int hkp_module_limit_begin(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main() || begun) return 0;
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *drop = atexit ? PyCFunction_New(&drop_definition, NULL) : NULL;
    PyObject *result = drop ? PyObject_CallMethod(atexit, "register", "O", drop) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(drop);
    Py_XDECREF(result);
    if (result) begun = Py_AtExit(at_end) == 0; /* there are 32 of them at most, of all libraries */
    return result ? 0 : -1;
}

/* ---- What Python calls --------------------------------------------------------------------------- */

PyObject *hkp_module_limit(PyObject *self, PyObject *args)
{
    (void)self;
    Py_ssize_t soft, hard;
    PyObject *callback;
    if (!PyArg_ParseTuple(args, "nnO", &soft, &hard, &callback)) return NULL;
    const bool main = PyInterpreterState_Get() == PyInterpreterState_Main();
    if (!main && (callback != Py_None || soft != 0)) {
        PyErr_SetString(PyExc_RuntimeError, "a soft limit is for the main interpreter");
        return NULL;
    }
    note_before();
    int status = soft < 0 || hard < 0;
    if (!status && main) status = hkp_limit((size_t)soft, (size_t)hard, hkp_pressure, NULL);
    else if (!status) status = hkp_limit_hard((size_t)hard);
    if (status != 0) {
        PyErr_SetString(PyExc_ValueError, "limits are at least 0, and the soft one is at most the hard one");
        return NULL;
    }
    if (!main) Py_RETURN_NONE;
    if (callback != Py_None) Py_INCREF(callback);
    put_callback(callback == Py_None ? NULL : callback);
    Py_RETURN_NONE;
}
