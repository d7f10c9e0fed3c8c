/* Functions of the extension module about sites and types. */
#ifndef HKP_MODULE_LABELS_H
#define HKP_MODULE_LABELS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* sites() -> [(file, function, line, blocks, bytes)], None while sites are off. */
PyObject *hkp_module_sites(PyObject *module, PyObject *unused);
/* site_of(object) -> (file, function, line, bytes), None when it is not known. */
PyObject *hkp_module_site_of(PyObject *module, PyObject *object);

/* census() -> {type: (blocks, bytes)}; what is no object of a known type is under None. */
PyObject *hkp_module_census(PyObject *module, PyObject *unused);

enum { HKP_GC_HEAD = 16, HKP_MANAGED_HEAD = 16 };
/* Bytes in front of an object of this type, in its block: the collector's links, and where the type says
 * so its dictionary and weak references. */
size_t hkp_module_head(const PyTypeObject *type);

#endif
