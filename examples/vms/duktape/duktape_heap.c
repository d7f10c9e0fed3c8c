/* Duktape's allocator: three functions, which get the heap. */
#include "duktape_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

/* What is in no rule, such as duk_heap_mem_alloc, takes memory for its callers. */
static const hak_site_rule RULES[] = {
    {"duk__hobject_alloc_init", "object"},
    {"duk_hobject_alloc", "object"},
    {"duk_hobject_realloc_props", "property"},
    {"duk_hobject_resize", "property"},
    {"duk_heap_strtable", "string"},
    {"duk__strtable", "string"},
    {"duk_hbuffer", "buffer"},
    {"duk_push_buffer", "buffer"},
    {"duk__hthread_", "stack"},
    {"duk_hthread_init_stacks", "stack"},
    {"duk__valstack", "stack"},
    {"duk_valstack", "stack"},
    {"duk__parse", "code"},
    {"duk__js_compile", "code"},
    {"duk__init_func", "code"},
    {"duk__convert", "code"},
    {"duk_lexer", "code"},
    {"duk_create_heap", "state"},
    {"duk_hthread_create", "state"},
    {"duk_heap_alloc", "state"},
};
static hak_sites *sites;

/* DUK_HEAP_ALLOC_FAIL_MARKANDSWEEP_LIMIT, and once before. */
enum { TRIES = 10 + 1 };

static const vm_kind KIND = {"Duktape", RULES, sizeof RULES / sizeof *RULES, &sites, HAK_WORKLOAD_COUNTED, 0};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *take(void *heap, duk_size_t n)
{
    return n ? vm_taken(heap, vm_take(heap, n, HAK_SITES_SP()), n) : NULL;
}

static void *resize(void *heap, void *p, duk_size_t n)
{
    if (!p) return n ? vm_taken(heap, vm_take(heap, n, HAK_SITES_SP()), n) : NULL;
    if (n) return vm_taken(heap, vm_resize(heap, p, n), n);
    vm_give(heap, p);
    return NULL;
}

static void give(void *heap, void *p)
{
    vm_give(heap, p);
}

/* ---- The host's side ----------------------------------------------------------------------------------- */

vm_heap *duktape_heap_new(hak_space *space, bool labels)
{
    return vm_heap_new(space, &KIND, labels);
}

/* Duktape ends the process when it finds no memory for its built-in objects: nobody is there yet to catch the error.
 * Nothing of it has to be undone: all is in the heap. */
duk_context *duktape_new(vm_heap *heap)
{
    jmp_buf escape;
    if (setjmp(escape)) return NULL;
    heap->escape = &escape;
    duk_context *duk = duk_create_heap(take, resize, give, heap, NULL);
    heap->escape = NULL;
    heap->reserve.tries = TRIES;
    return duk;
}

void duktape_limit(vm_heap *heap, size_t limit)
{
    vm_heap_limit(heap, limit, NULL, NULL);
}
