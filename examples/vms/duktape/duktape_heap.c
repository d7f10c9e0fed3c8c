/* Duktape's allocator: three functions, which get the heap. */
#include "duktape_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

enum { OBJECT = 1, PROPERTY, STRING, BUFFER, STACK, CODE, STATE, LABELS = STATE };
static const char *const NAMES[LABELS] = {"object", "property", "string", "buffer", "stack", "code", "state"};
/* What is in no rule, such as duk_heap_mem_alloc, takes memory for its callers. */
static const sites_rule RULES[] = {
    {"duk__hobject_alloc_init", OBJECT},
    {"duk_hobject_alloc", OBJECT},
    {"duk_hobject_realloc_props", PROPERTY},
    {"duk_hobject_resize", PROPERTY},
    {"duk_heap_strtable", STRING},
    {"duk__strtable", STRING},
    {"duk_hbuffer", BUFFER},
    {"duk_push_buffer", BUFFER},
    {"duk__hthread_", STACK},
    {"duk_hthread_init_stacks", STACK},
    {"duk__valstack", STACK},
    {"duk_valstack", STACK},
    {"duk__parse", CODE},
    {"duk__js_compile", CODE},
    {"duk__init_func", CODE},
    {"duk__convert", CODE},
    {"duk_lexer", CODE},
    {"duk_create_heap", STATE},
    {"duk_hthread_create", STATE},
    {"duk_heap_alloc", STATE},
    {NULL, 0},
};
static sites places;

/* DUK_HEAP_ALLOC_FAIL_MARKANDSWEEP_LIMIT, and once before. */
enum { TRIES = 10 + 1 };

static const vm_kind KIND = {"Duktape", NAMES, LABELS, RULES, &places, HAK_WORKLOAD_COUNTED, 0};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *take(void *heap, duk_size_t n)
{
    return n ? vm_taken(heap, vm_take(heap, n, SITES_SP()), n) : NULL;
}

static void *resize(void *heap, void *p, duk_size_t n)
{
    if (!p) return n ? vm_taken(heap, vm_take(heap, n, SITES_SP()), n) : NULL;
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
    heap->tries = TRIES;
    return duk;
}

void duktape_limit(vm_heap *heap, size_t limit)
{
    vm_heap_limit(heap, limit, NULL, NULL);
}
