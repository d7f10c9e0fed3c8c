/* hakmem._hakmem: the hook's functions for Python. It is linked to libhakmem_pyhook.so, which the loader has
 * once in a process: preloaded, or loaded with this module. What Python code sees is made in the package. */
#define PY_SSIZE_T_CLEAN
#include "module/module.h"

#include "common/size.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "heap/resident.h"
#include "hook/install.h"
#include "hook/live.h"
#include "hook/report.h"
#include "hook/requests.h"
#include "module/labels.h"
#include "native/kinds.h"

#include <stdlib.h>

static const char *const domain_names[HKP_DOMAINS] = {"raw", "mem", "obj", "arena", "malloc"};
static const char *const state_names[] = {"default", "replaced", "wrapped", "covered", "displaced"};

/* Takes the reference to value, which may be NULL with an error set. */
static int set(PyObject *dict, const char *name, PyObject *value)
{
    int result = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

static PyObject *install(PyObject *self, PyObject *args)
{
    (void)self;
    int all, mode;
    const char *labels;
    if (!PyArg_ParseTuple(args, "pis", &all, &mode, &labels)) return NULL;
    return PyBool_FromLong(hkp_install(all != 0, (hkp_mode)mode, labels) == 0);
}

static PyObject *mixed_kinds(void)
{
    hkp_mixed mixed[HKP_KINDS];
    const size_t count = hkp_kinds_mixed(mixed);
    PyObject *result = PyDict_New();
    for (size_t i = 0; result && i < count; i++)
        if (set(result, mixed[i].kind, PyUnicode_FromString(mixed[i].label)) < 0) Py_CLEAR(result);
    return result;
}

static PyObject *status(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hkp_status s;
    hkp_status_get(&s, true);
    PyObject *result = Py_BuildValue("{s:O,s:O,s:s,s:s}", "installed", s.installed ? Py_True : Py_False,
                                     "early", s.early ? Py_True : Py_False, "labels", s.labels, "why", s.why);
    PyObject *holders = result ? PyDict_New() : NULL;
    for (int d = 0; holders && d < HKP_DOMAINS; d++) {
        if (set(result, domain_names[d], PyUnicode_FromString(state_names[s.state[d]])) < 0 ||
            (s.holder[d][0] && set(holders, domain_names[d], PyUnicode_DecodeFSDefault(s.holder[d])) < 0))
            Py_CLEAR(holders);
    }
    if (!holders || PyDict_SetItemString(result, "holder", holders) < 0 ||
        set(result, "mixed", mixed_kinds()) < 0)
        Py_CLEAR(result);
    Py_XDECREF(holders);
    return result;
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hak_stats s = {.size = sizeof s};
    if (hkp_stats(&s) != 0) return PyErr_NoMemory();
    const struct {
        const char *name;
        size_t value;
    } fields[] = {
        {"live_bytes", s.live_bytes},         {"live_blocks", s.live_blocks},
        {"peak_bytes", s.peak_bytes},         {"committed_bytes", s.committed_bytes},
        {"metadata_bytes", s.metadata_bytes}, {"cached_bytes", s.cached_bytes},
        {"released_bytes", s.released_bytes}, {"reserved_bytes", s.reserved_bytes},
        {"retained_bytes", s.retained_bytes}, {"big_bytes", s.big_bytes},
        {"big_blocks", s.big_blocks},         {"soft_limit", s.soft_limit},
        {"hard_limit", s.hard_limit},         {"failures", (size_t)s.failures},
        {"os_calls", (size_t)s.os_calls},     {"resident_bytes", hkp_resident()},
    };
    PyObject *result = PyDict_New();
    for (size_t i = 0; result && i < sizeof fields / sizeof *fields; i++)
        if (set(result, fields[i].name, PyLong_FromSize_t(fields[i].value)) < 0) Py_CLEAR(result);
    return result;
}

static PyObject *labels(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hak_label_info info[HAK_LABELS_MAX + 1];
    int n = hkp_labels(info);
    PyObject *result = PyDict_New();
    for (int i = 0; result && i < n; i++) {
        const char *name = info[i].label ? info[i].name : "unlabelled";
        if (info[i].live_blocks &&
            set(result, name,
                Py_BuildValue("(nn)", (Py_ssize_t)info[i].live_bytes, (Py_ssize_t)info[i].live_blocks)) < 0)
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *report(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    hkp_out out;
    hkp_out_open(&out, -1);
    hkp_report_json_text(&out, true);
    return hkp_module_out(&out);
}

static PyObject *trim(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    size_t bytes;
    Py_BEGIN_ALLOW_THREADS bytes = hkp_trim();
    Py_END_ALLOW_THREADS return PyLong_FromSize_t(bytes);
}

HKP_CALLS(reset_peak, hkp_peak_reset)

/* ---- Scopes -------------------------------------------------------------------------------------- */

static PyObject *define(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    hak_label label = hkp_label_define(name);
    if (label) return PyLong_FromLong(label);
    PyErr_Format(PyExc_ValueError, "no label '%s': a name has 1 to 63 bytes, and there are %d labels at most",
                 name, HAK_LABELS_MAX);
    return NULL;
}

/* ---- While it runs ------------------------------------------------------------------------------- */

/* None = there is a socket; else why not, as a text. */
static PyObject *live(PyObject *self, PyObject *args)
{
    (void)self;
    const char *place;
    if (!PyArg_ParseTuple(args, "s", &place)) return NULL;
    const char *wrong = hkp_live_start(place);
    if (!wrong) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(wrong);
}

HKP_CALLS(live_before_fork, hkp_live_before_fork)
HKP_CALLS(live_after_fork, hkp_live_after_fork)
HKP_CALLS(live_in_child, hkp_live_in_child)

/* ---- The command line ---------------------------------------------------------------------------- */

static PyObject *parse_size(PyObject *self, PyObject *args)
{
    (void)self;
    const char *text;
    size_t bytes;
    if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
    const char *wrong = hkc_size_parse(text, &bytes);
    return wrong ? PyErr_Format(PyExc_ValueError, "'%s' %s", text, wrong) : PyLong_FromSize_t(bytes);
}

static PyObject *request(PyObject *self, PyObject *args)
{
    (void)self;
    int pid, number;
    unsigned what, attempt;
    unsigned long long name;
    if (!PyArg_ParseTuple(args, "iiIIK", &pid, &number, &what, &attempt, &name)) return NULL;
    if (hkp_request(pid, number, (hkp_wish)what, attempt, name) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, NULL},
    {"status", status, METH_NOARGS, NULL},
    {"stats", stats, METH_NOARGS, NULL},
    {"resident", hkp_module_resident, METH_NOARGS, NULL},
    {"labels", labels, METH_NOARGS, NULL},
    {"report", report, METH_NOARGS, NULL},
    {"text", hkp_module_text, METH_VARARGS, NULL},
    {"trim", trim, METH_NOARGS, NULL},
    {"reset_peak", reset_peak, METH_NOARGS, NULL},
    {"limit", hkp_module_limit, METH_VARARGS, NULL},
    {"define", define, METH_VARARGS, NULL},
    {"live", live, METH_VARARGS, NULL},
    {"live_in_child", live_in_child, METH_NOARGS, NULL},
    {"live_before_fork", live_before_fork, METH_NOARGS, NULL},
    {"live_after_fork", live_after_fork, METH_NOARGS, NULL},
    {"parse_size", parse_size, METH_VARARGS, NULL},
    {"request", request, METH_VARARGS, NULL},
    {"sites", hkp_module_sites, METH_NOARGS, NULL},
    {"site_of", hkp_module_site_of, METH_O, NULL},
    {"census", hkp_module_census, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_parts(PyObject *module)
{
    return PyModule_AddFunctions(module, hkp_scope_methods) < 0 ||
                   PyModule_AddFunctions(module, hkp_profile_methods) < 0 || hkp_module_limit_begin() < 0 ||
                   PyModule_AddStringConstant(module, "VERSION", hkp_version()) < 0
               ? -1
               : PyModule_AddStringConstant(module, "MARKER", HKP_MARKER);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)(intptr_t)add_parts},
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
