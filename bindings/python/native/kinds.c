#include "native/kinds.h"

#include "base/cpython.h"
#include "heap/heap.h"

#include <string.h>

/* What makes objects takes no more than these: pointers and sizes, and NULL behind them. */
typedef void *make_fn(const void *first, const void *second, const void *third);

typedef struct kind {
    const char *label, *function;
    const char *object; /* the first argument, by its name; "" = the set */
    const void *first, *second, *third;
} kind;

static char text[] = "a text that no cache of short ones has";
#define SIZE(n) ((const void *)(uintptr_t)(n))

static const kind kinds[HKP_KINDS] = {
    {"set", "PySet_New", NULL, NULL, NULL, NULL},
    {"dict", "PyDict_New", NULL, NULL, NULL, NULL},
    {"instance", "PyObject_CallObject", "PyBaseObject_Type", NULL, NULL, NULL},
    {"weakref", "PyWeakref_NewRef", "", NULL, NULL, NULL},
    {"list", "PyList_New", NULL, SIZE(3), NULL, NULL},
    {"tuple", "PyTuple_New", NULL, SIZE(30), NULL, NULL},
    {"unicode", "PyUnicode_FromString", NULL, text, NULL, NULL},
    {"bytes", "PyBytes_FromString", NULL, text, NULL, NULL},
    {"int", "PyLong_FromSsize_t", NULL, SIZE((size_t)1 << 40), NULL, NULL},
    {"module", "PyModule_New", NULL, "hakmem_kinds", NULL, NULL},
    {"buffer", "PyMemoryView_FromMemory", NULL, text, SIZE(sizeof text), SIZE(0x100)}, /* PyBUF_READ */
};

static const char *found[HKP_KINDS]; /* the label that is not the kind's */

/* The label of an object's block, which begins at the object or before it, with what the collector and the
 * instance have there. NULL = it is not in the heap. */
static const char *label_of(const void *object)
{
    enum { HEADS = 3, HEAD = 16 };
    for (int i = 0; object && i < HEADS; i++) {
        const void *block = (const char *)object - i * HEAD;
        if (hkp_is_block(block)) return hak_label_name(hkp_ctx(), hak_label_of(hkp_ctx(), block));
    }
    return NULL;
}

static void *make(const kind *k, const void *set)
{
    make_fn *fn;
    const void *first = k->first;
    if (k->object) first = *k->object ? hkp_symbol(k->object) : set;
    if ((k->object && !first) || !hkp_function(k->function, &fn)) return NULL;
    return fn(first, k->second, k->third);
}

/* One that comes from a list of free ones has the label of who asked for it first: the next one is tried, and
 * such lists are shorter than this. Returns the label that none of them should have; NULL = all is well. */
static const char *try_kind(const kind *k, const void *set, void (*drop)(void *))
{
    enum { TRIES = 100 };
    void *made[TRIES];
    const char *label = NULL;
    int count = 0;
    while (count < TRIES && (made[count] = make(k, set))) {
        label = label_of(made[count++]);
        if (!label || strcmp(label, k->label) == 0) break;
    }
    const bool well = !label || strcmp(label, k->label) == 0;
    while (count > 0)
        drop(made[--count]);
    return well ? NULL : label;
}

void hkp_kinds_try(void)
{
    void (*drop)(void *);
    void (*clear)(void);
    if (!hkp_function("Py_DecRef", &drop) || !hkp_function("PyErr_Clear", &clear)) return;
    void *set = make(&kinds[0], NULL);
    for (size_t i = 0; i < HKP_KINDS; i++)
        found[i] = try_kind(&kinds[i], set, drop);
    if (set) drop(set);
    clear();
}

size_t hkp_kinds_mixed(hkp_mixed out[HKP_KINDS])
{
    size_t count = 0;
    for (size_t i = 0; i < HKP_KINDS; i++)
        if (found[i]) out[count++] = (hkp_mixed){kinds[i].label, found[i]};
    return count;
}
