#include "module/labels.h"

#include "lines/site.h"

#if PY_VERSION_HEX >= 0x030C0000
#define MANAGED (Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF)
#elif PY_VERSION_HEX >= 0x030B0000
#define MANAGED Py_TPFLAGS_MANAGED_DICT
#else
#define MANAGED 0UL
#endif

size_t hkp_module_head(const PyTypeObject *type)
{
    if (!(type->tp_flags & Py_TPFLAGS_HAVE_GC)) return 0;
    return type->tp_flags & MANAGED ? HKP_GC_HEAD + HKP_MANAGED_HEAD : HKP_GC_HEAD;
}

static PyObject *name_of(const hkp_site_info *site)
{
    return PyUnicode_DecodeUTF8(site->function, (Py_ssize_t)strlen(site->function), "replace");
}

static PyObject *sites_list(const hkp_site_info *sites, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        if (sites[i].live_blocks == 0) continue;
        PyObject *entry = Py_BuildValue("NNinnn", PyUnicode_DecodeFSDefault(sites[i].file),
                                        name_of(&sites[i]), sites[i].line, (Py_ssize_t)sites[i].live_blocks,
                                        (Py_ssize_t)sites[i].live_bytes, (Py_ssize_t)sites[i].asked_bytes);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyObject *hkp_module_sites(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    size_t count = hkp_site_count();
    if (count == 0) Py_RETURN_NONE;
    hkp_site_info *table = PyMem_RawCalloc(count, sizeof *table);
    if (!table) return PyErr_NoMemory();
    hkp_site_stats(table, count);
    PyObject *list = sites_list(table, count);
    PyMem_RawFree(table);
    return list;
}

PyObject *hkp_module_site_of(PyObject *module, PyObject *object)
{
    (void)module;
    hkp_site_info site;
    const char *block = (const char *)object - hkp_module_head(Py_TYPE(object));
    if (!hkp_site_of(block, &site)) Py_RETURN_NONE;
    return Py_BuildValue("NNinn", PyUnicode_DecodeFSDefault(site.file), name_of(&site), site.line,
                         (Py_ssize_t)site.live_bytes, (Py_ssize_t)site.asked_bytes);
}
