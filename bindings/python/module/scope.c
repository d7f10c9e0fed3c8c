/* The scopes of hakmem.label: what the hooks need to know of this interpreter. */
#include "module/module.h"

#include "paths/scope.h"

/* The ContextVar: a tuple (label, outer scope) or nothing. Of the main interpreter; in others there are no
 * scopes, since a hook must not touch an object of another interpreter. */
static PyObject *variable;

static hak_label resolve(void)
{
    PyObject *scope = NULL;
    if (PyThreadState_Get()->interp != PyInterpreterState_Main() ||
        PyContextVar_Get(variable, Py_None, &scope) < 0)
        return 0;
    long label = PyTuple_CheckExact(scope) ? PyLong_AsLong(PyTuple_GET_ITEM(scope, 0)) : 0;
    Py_DECREF(scope);
    return (hak_label)label;
}

static const void *thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* The variable, made on first use. In other interpreters it is one that the hooks do not look at. */
static PyObject *scope_variable(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    bool seen = PyInterpreterState_Get() == PyInterpreterState_Main();
    if (seen && variable) return Py_NewRef(variable);
    PyObject *made = PyContextVar_New("hakmem_label", NULL);
    if (!made || !seen) return made;
    variable = Py_NewRef(made);
    const hkp_scope_source source = {thread_state, offsetof(PyThreadState, context_ver), resolve};
    hkp_scope_enable(&source);
    return made;
}

HKP_CALLS(scope_changed, hkp_scope_changed)

PyMethodDef hkp_scope_methods[] = {
    {"scope_variable", scope_variable, METH_NOARGS, NULL},
    {"scope_changed", scope_changed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
