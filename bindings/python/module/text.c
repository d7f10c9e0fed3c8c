/* Reports as text: that of a file by what Python read of it. */
#define PY_SSIZE_T_CLEAN
#include "module/module.h"

#include "heap/heap.h"
#include "hook/report.h"
#include "hook/text.h"

PyObject *hkp_module_out(hkp_out *out)
{
    PyObject *result =
        out->error ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(out->bytes, (Py_ssize_t)out->used, "replace");
    hkp_out_close(out);
    return result;
}

PyObject *hkp_module_resident(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    hkp_out out;
    hkp_out_open(&out, -1);
    hkp_report_resident(&out);
    return hkp_module_out(&out);
}

static bool read_label(PyObject *row, hak_label_info *l)
{
    *l = (hak_label_info){0};
    return PyArg_ParseTuple(row, "skk", &l->name, &l->live_bytes, &l->live_blocks);
}

static bool read_site(PyObject *row, hkp_site_info *s)
{
    return PyArg_ParseTuple(row, "ssikkkk", &s->file, &s->function, &s->line, &s->live_bytes, &s->asked_bytes,
                            &s->live_blocks, &s->reused_bytes);
}

static bool read_rows(hkp_text *t, PyObject *label_rows, hak_label_info *labels, PyObject *site_rows,
                      hkp_site_info *sites)
{
    for (size_t i = 0; i < t->label_count; i++)
        if (!read_label(PyList_GET_ITEM(label_rows, (Py_ssize_t)i), &labels[i])) return false;
    for (size_t i = 0; i < t->site_count; i++)
        if (!read_site(PyList_GET_ITEM(site_rows, (Py_ssize_t)i), &sites[i])) return false;
    t->labels = labels;
    t->sites = site_rows != Py_None ? sites : NULL;
    return true;
}

static bool read_wrapped(hkp_text *t, PyObject *rows)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        int domain;
        unsigned long long allocations, bytes;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "iKK", &domain, &allocations, &bytes)) return false;
        if (domain < 0 || domain >= HKP_ARENA) continue;
        t->wrapped[domain] = true;
        t->wrap_counts[domain] = (hkp_wrap_count){.allocations = allocations, .bytes = bytes};
    }
    return true;
}

static bool read_stats(hkp_text *t, PyObject *numbers)
{
    hak_stats *s = &t->stats;
    unsigned long long failures;
    t->stats.size = sizeof t->stats;
    if (!PyArg_ParseTuple(numbers, "kkkkkkkkkkkK", &s->live_bytes, &s->big_bytes, &s->cached_bytes,
                          &s->released_bytes, &s->retained_bytes, &s->metadata_bytes, &t->resident,
                          &t->resident_ours, &s->peak_bytes, &s->committed_bytes, &s->hard_limit, &failures))
        return false;
    s->failures = failures;
    return true;
}

/* Rows of (name, hint, bytes); those for which there is no room are left out. */
static bool read_parts(hkp_text *t, PyObject *rows, hkc_parts *parts)
{
    *parts = (hkc_parts){.count = 0};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows) && i < HKC_PARTS; i++) {
        const char *name, *hint;
        hkc_part *part = &parts->part[parts->count++];
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "ssk", &name, &hint, &part->bytes)) return false;
        snprintf(part->name, sizeof part->name, "%s", name);
        snprintf(part->hint, sizeof part->hint, "%s", hint);
        parts->sum += part->bytes;
    }
    t->parts = parts;
    return true;
}

_Static_assert(sizeof(size_t) == sizeof(unsigned long), "k of PyArg_ParseTuple");

/* (texts, numbers, statistics, labels, sites or None, wrapped, parts) */
PyObject *hkp_module_text(PyObject *module, PyObject *args)
{
    (void)module;
    hkp_text t = {0};
    hkp_out out;
    unsigned long long cpu;
    PyObject *numbers, *labels, *sites, *wrapped, *part_rows;
    hkc_parts parts;
    if (!PyArg_ParseTuple(args, "(sssssssss)(lKk)OO!OO!O!", &t.version, &t.command, &t.python, &t.why,
                          &t.states[HKP_RAW], &t.states[HKP_MEM], &t.states[HKP_OBJ], &t.states[HKP_ARENA],
                          &t.states[HKP_MALLOC], &t.process, &cpu, &t.resident_peak, &numbers, &PyList_Type,
                          &labels, &sites, &PyList_Type, &wrapped, &PyList_Type, &part_rows))
        return NULL;
    t.cpu = cpu;
    t.label_count = (size_t)PyList_GET_SIZE(labels);
    t.site_count = PyList_Check(sites) ? (size_t)PyList_GET_SIZE(sites) : 0;
    hak_label_info *label_rows = PyMem_New(hak_label_info, t.label_count + 1);
    hkp_site_info *site_rows = PyMem_New(hkp_site_info, t.site_count + 1);
    PyObject *result = NULL;
    if (!label_rows || !site_rows) {
        PyErr_NoMemory();
    } else if (read_stats(&t, numbers) && read_rows(&t, labels, label_rows, sites, site_rows) &&
               read_wrapped(&t, wrapped) && read_parts(&t, part_rows, &parts)) {
        hkp_out_open(&out, -1);
        hkp_text_put(&t, &out);
        result = hkp_module_out(&out);
    }
    PyMem_Free(label_rows);
    PyMem_Free(site_rows);
    return result;
}
