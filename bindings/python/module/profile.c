/* hakmem.profile: begins, ends and marks. What it found is in reports. */
#define PY_SSIZE_T_CLEAN
#include "module/module.h"

#include "hook/install.h"
#include "hook/report.h"
#include "profile/asker.h"

/* (exact, mean, depth, table, seed, nanoseconds of a window) */
static PyObject *profile_start(PyObject *self, PyObject *args)
{
    (void)self;
    int exact;
    Py_ssize_t mean, table;
    unsigned depth;
    unsigned long long seed, window;
    if (!PyArg_ParseTuple(args, "pnInKK", &exact, &mean, &depth, &table, &seed, &window)) return NULL;
    const hkp_profile_options options = {.exact = exact,
                                         .mean = (size_t)mean,
                                         .depth = depth,
                                         .table_bytes = (size_t)table,
                                         .seed = seed,
                                         .window_ns = window};
    hkp_asker_prepare();
    const char *wrong = hkp_install_profile(&options);
    if (!wrong) Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError, wrong);
    return NULL;
}

static PyObject *done(int status)
{
    if (status == 0) Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError, "there is no profile");
    return NULL;
}

static PyObject *profile_stop(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return done(hkp_install_profile_stop());
}

static PyObject *profile_reset(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return done(hkp_profile_reset());
}

static PyObject *profile_mark(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    const int window = hkp_profile_mark(name);
    if (window > 0) return PyLong_FromLong(window);
    if (window == -2) return PyErr_NoMemory();
    return done(window);
}

/* (from, to), windows, to -1 = now: the stacks that changed, as JSON. */
static PyObject *profile_diff(PyObject *self, PyObject *args)
{
    (void)self;
    int from, to;
    hak_profile_info info = {.size = sizeof info};
    if (!PyArg_ParseTuple(args, "ii", &from, &to)) return NULL;
    if (hkp_profile_stats(&info) != 0) return done(-1);
    const int now = (int)info.marks + 1, end = to == -1 ? now : to;
    if (from < 0 || end <= from || end > now)
        return PyErr_Format(PyExc_ValueError, "no windows %d to %d, the last one is %d", from, end, now - 1);
    hkp_out out;
    hkp_out_open(&out, -1);
    const int error = hkp_report_diff_text(&out, (unsigned)from, (unsigned)end);
    if (error) out.error = error;
    return hkp_module_out(&out);
}

/* Whether one runs; None = there is none. */
static PyObject *profile_running(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hak_profile_info info = {.size = sizeof info};
    if (hkp_profile_stats(&info) != 0) Py_RETURN_NONE;
    return PyBool_FromLong(info.running);
}

HKP_CALLS(profile_end, hkp_profile_end)

PyMethodDef hkp_profile_methods[] = {
    {"profile_start", profile_start, METH_VARARGS, NULL},
    {"profile_stop", profile_stop, METH_NOARGS, NULL},
    {"profile_reset", profile_reset, METH_NOARGS, NULL},
    {"profile_mark", profile_mark, METH_VARARGS, NULL},
    {"profile_diff", profile_diff, METH_VARARGS, NULL},
    {"profile_running", profile_running, METH_NOARGS, NULL},
    {"profile_end", profile_end, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
