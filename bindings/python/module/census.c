/* Types of live blocks: a block is an object where its type is one that Python knows, and fits. */
#include "module/labels.h"

#include "heap/domains.h"
#include "heap/heap.h"
#include "heap/labels.h"

/* Of a live object; one in a list of free ones has 0 there, or what comes next in the list. Immortal ones
 * have 32 bits or fewer. From 3.14 on the highest 16 bits are flags, which immortal objects have. */
#define REFERENCES_MAX UINT64_C(0xffffffff)
#if PY_VERSION_HEX >= 0x030E0000
#define REFERENCES_MASK (UINT64_MAX >> 16)
#else
#define REFERENCES_MASK UINT64_MAX
#endif

typedef struct entry {
    PyTypeObject *type; /* NULL = free */
    size_t blocks, bytes;
} entry;

/* Open addressing, at most half full, never changed while blocks are visited. */
typedef struct table {
    entry *entries;
    size_t size; /* a power of 2 */
    entry other;
} table;

static entry *slot_of(const table *t, const PyTypeObject *type)
{
    size_t i = (size_t)(((uintptr_t)type >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->size - 1);
    while (t->entries[i].type && t->entries[i].type != type)
        i = (i + 1) & (t->size - 1);
    return &t->entries[i];
}

/* Of an object without what follows it. A str with its characters inside is smaller than its type says. */
static size_t least_size(const PyTypeObject *type)
{
    return type == &PyUnicode_Type ? sizeof(PyASCIIObject) : (size_t)type->tp_basicsize;
}

/* The type of the object that would stand `head` bytes into the block, `other` for one in a list of free
 * ones, which has what it had when it was in use; NULL = there is none. */
static entry *type_at(table *t, const hak_block *block, size_t head)
{
    const char *object = (const char *)block->p + head;
    if (block->size < head + sizeof(PyObject)) return NULL;
    uint64_t references;
    const PyTypeObject *type;
    memcpy(&references, object, sizeof references);
    memcpy(&type, object + offsetof(PyObject, ob_type), sizeof type);
    if (!type) return NULL;
    entry *e = slot_of(t, type);
    if (!e->type || hkp_module_head(type) != head || block->size - head < least_size(type)) return NULL;
    return (references & REFERENCES_MASK) - 1 < REFERENCES_MAX ? e : &t->other;
}

static bool count(void *user, const hak_block *block)
{
    table *t = user;
    if (block->label == HKP_DOMAIN_LABEL(HKP_ARENA)) return true;
    entry *e = type_at(t, block, 0);
    if (!e) e = type_at(t, block, HKP_GC_HEAD);
    if (!e) e = type_at(t, block, HKP_GC_HEAD + HKP_MANAGED_HEAD);
    if (!e) e = &t->other;
    e->blocks++;
    e->bytes += block->size;
    return true;
}

/* All types of this interpreter, each after the first that it is derived from. */
static PyObject *all_types(void)
{
    PyObject *types = PyList_New(0), *seen = PySet_New(NULL);
    int failed = !types || !seen || PyList_Append(types, (PyObject *)&PyBaseObject_Type) < 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(types); i++) {
        PyObject *derived =
            PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", PyList_GET_ITEM(types, i));
        failed = !derived || !PyList_Check(derived);
        for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(derived); k++) {
            PyObject *type = PyList_GET_ITEM(derived, k);
            Py_ssize_t before = PySet_GET_SIZE(seen);
            PyObject *key = PyLong_FromVoidPtr(type); /* a metaclass may make types that cannot be hashed */
            failed = !key || PySet_Add(seen, key) < 0 ||
                     (PySet_GET_SIZE(seen) > before && PyList_Append(types, type) < 0);
            Py_XDECREF(key);
        }
        Py_XDECREF(derived);
    }
    Py_XDECREF(seen);
    if (failed) Py_CLEAR(types);
    return types;
}

static bool make_table(table *t, PyObject *types)
{
    size_t n = (size_t)PyList_GET_SIZE(types);
    t->size = 1024;
    while (t->size < 2 * n)
        t->size *= 2;
    t->entries = PyMem_RawCalloc(t->size, sizeof *t->entries);
    if (!t->entries) return false;
    for (size_t i = 0; i < n; i++) {
        PyTypeObject *type = (PyTypeObject *)PyList_GET_ITEM(types, (Py_ssize_t)i);
        slot_of(t, type)->type = type;
    }
    return true;
}

static int put(PyObject *counts, PyObject *key, const entry *e)
{
    PyObject *pair = Py_BuildValue("nn", (Py_ssize_t)e->blocks, (Py_ssize_t)e->bytes);
    int failed = !pair || PyDict_SetItem(counts, key, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

/* A type that cannot be a key, since its metaclass has no hash, counts as unknown. */
static int put_type(PyObject *counts, const entry *e, entry *other)
{
    if (put(counts, (PyObject *)e->type, e) == 0) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    other->blocks += e->blocks;
    other->bytes += e->bytes;
    return 0;
}

static PyObject *counts_of(table *t)
{
    PyObject *counts = PyDict_New();
    for (size_t i = 0; counts && i < t->size; i++) {
        const entry *e = &t->entries[i];
        if (e->blocks > 0 && put_type(counts, e, &t->other) < 0) Py_CLEAR(counts);
    }
    if (counts && put(counts, Py_None, &t->other) < 0) Py_CLEAR(counts);
    return counts;
}

PyObject *hkp_module_census(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    table t = {NULL, 0, {NULL, 0, 0}};
    PyObject *types = all_types(), *counts = NULL;
    if (types && !make_table(&t, types)) PyErr_NoMemory();
    if (t.entries) {
        hkp_visit(count, &t);
        /* Arenas without a label, which are no objects. */
        hkp_amount arenas = hkp_counts_sum(HKP_ARENA);
        t.other.blocks -= arenas.blocks;
        t.other.bytes -= arenas.bytes;
        counts = counts_of(&t);
    }
    PyMem_RawFree(t.entries);
    Py_XDECREF(types);
    return counts;
}
