/* mruby's allocator, one function with the heap as its last argument. */
#include "mruby_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

enum { OBJECT = 1, STRING, ARRAY, HASH, VARIABLE, METHOD, SYMBOL, STACK, CODE, STATE, LABELS = STATE };
static const char *const NAMES[LABELS] = {"object", "string", "array", "hash", "variable",
                                          "method", "symbol", "stack", "code", "state"};
/* Objects lie in pages of mruby's own, 1024 to a page; what they have beside is elsewhere. What is in no rule, such
 * as mrb_realloc, takes memory for its callers. */
static const sites_rule RULES[] = {
    {"add_heap", OBJECT},
    {"mrb_str_", STRING},
    {"str_", STRING},
    {"mrb_ary_", ARRAY},
    {"ary_", ARRAY},
    {"mrb_hash_", HASH},
    {"hash_", HASH},
    {"ht_", HASH},
    {"iv_", VARIABLE},
    {"mrb_obj_iv_", VARIABLE},
    {"mrb_env_", VARIABLE},
    {"mt_", METHOD},
    {"mrb_proc_", METHOD},
    {"boot_defclass", METHOD},
    {"prepare_singleton_class", METHOD},
    {"sym_", SYMBOL},
    {"mrb_intern", SYMBOL},
    {"mrb_vm_ci_", STACK},
    {"stack_", STACK},
    {"cipush", STACK},
    {"mrb_stack_", STACK},
    {"fiber_", STACK},
    {"mrb_pool_", CODE},
    {"mrb_add_irep", CODE},
    {"scope_", CODE},
    {"codegen", CODE},
    {"gen_", CODE},
    {"new_lit", CODE},
    {"yyparse", CODE},
    {"parser_", CODE},
    {"mrb_parse", CODE},
    {"read_irep", CODE},
    {"mrb_open", STATE},
    {"mrb_init", STATE},
    {"mrb_gc_", STATE},
    {"mrb_io_", STATE},
    {NULL, 0},
};
static sites places;

/* mrb_realloc_simple asks, collects, and asks again. */
enum { TRIES = 2 };

static const vm_kind KIND = {"mruby", NAMES, LABELS, RULES, &places, HAK_WORKLOAD_TRACED, 0};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *allocate(mrb_state *mrb, void *p, size_t n, void *heap)
{
    (void)mrb;
    if (!p) return n ? vm_taken(heap, vm_take(heap, n, SITES_SP()), n) : NULL;
    if (n) return vm_taken(heap, vm_resize(heap, p, n), n);
    vm_give(heap, p);
    return NULL;
}

/* ---- The host's side ----------------------------------------------------------------------------------- */

vm_heap *mruby_heap_new(hak_space *space, bool labels)
{
    return vm_heap_new(space, &KIND, labels);
}

vm_heap *mruby_heap_of(const mrb_state *mrb)
{
    return mrb->allocf == allocate ? mrb->allocf_ud : NULL;
}

/* mruby ends the process when it finds no memory while it begins. Nothing of it has to be undone: all is in the
 * heap. */
mrb_state *mruby_new(vm_heap *heap)
{
    jmp_buf escape;
    if (setjmp(escape)) return NULL;
    heap->escape = &escape;
    mrb_state *mrb = mrb_open_allocf(allocate, heap);
    heap->escape = NULL;
    heap->tries = TRIES;
    return mrb;
}

void mruby_limit(vm_heap *heap, size_t limit)
{
    vm_heap_limit(heap, limit, NULL, NULL);
}
