#include "module_labels.h"

#include "site.h"

static PyObject *name_of(const hk_py_site_info *site)
{
    return PyUnicode_DecodeUTF8(site->function, (Py_ssize_t)strlen(site->function), "replace");
}

static PyObject *sites_list(const hk_py_site_info *sites, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        if (sites[i].live_blocks == 0) continue;
        PyObject *entry =
            Py_BuildValue("NNinn", PyUnicode_DecodeFSDefault(sites[i].file), name_of(&sites[i]),
                          sites[i].line, (Py_ssize_t)sites[i].live_blocks, (Py_ssize_t)sites[i].live_bytes);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyObject *hk_py_module_sites(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    size_t count = hk_py_site_count();
    if (count == 0) Py_RETURN_NONE;
    hk_py_site_info *table = PyMem_RawCalloc(count, sizeof *table);
    if (!table) return PyErr_NoMemory();
    hk_py_site_stats(table, count);
    PyObject *list = sites_list(table, count);
    PyMem_RawFree(table);
    return list;
}

PyObject *hk_py_module_site_of(PyObject *module, PyObject *object)
{
    (void)module;
    hk_py_site_info site;
    const char *block = (const char *)object - hk_py_module_head(Py_TYPE(object));
    if (!hk_py_site_of(block, &site)) Py_RETURN_NONE;
    return Py_BuildValue("NNin", PyUnicode_DecodeFSDefault(site.file), name_of(&site), site.line,
                         (Py_ssize_t)site.live_bytes);
}
