/* mruby's allocator, one function with the heap as its last argument. */
#include "mruby_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

/* Objects lie in pages of mruby's own, 1024 to a page; what they have beside is elsewhere. What is in no rule, such
 * as mrb_realloc, takes memory for its callers. */
static const hak_site_rule RULES[] = {
    {"add_heap", "object"},
    {"mrb_str_", "string"},
    {"str_", "string"},
    {"mrb_ary_", "array"},
    {"ary_", "array"},
    {"mrb_hash_", "hash"},
    {"hash_", "hash"},
    {"ht_", "hash"},
    {"iv_", "variable"},
    {"mrb_obj_iv_", "variable"},
    {"mrb_env_", "variable"},
    {"mt_", "method"},
    {"mrb_proc_", "method"},
    {"boot_defclass", "method"},
    {"prepare_singleton_class", "method"},
    {"sym_", "symbol"},
    {"mrb_intern", "symbol"},
    {"mrb_vm_ci_", "stack"},
    {"stack_", "stack"},
    {"cipush", "stack"},
    {"mrb_stack_", "stack"},
    {"fiber_", "stack"},
    {"mrb_pool_", "code"},
    {"mrb_add_irep", "code"},
    {"scope_", "code"},
    {"codegen", "code"},
    {"gen_", "code"},
    {"new_lit", "code"},
    {"yyparse", "code"},
    {"parser_", "code"},
    {"mrb_parse", "code"},
    {"read_irep", "code"},
    {"mrb_open", "state"},
    {"mrb_init", "state"},
    {"mrb_gc_", "state"},
    {"mrb_io_", "state"},
};
static hak_sites *sites;

/* mrb_realloc_simple asks, collects, and asks again. */
enum { TRIES = 2 };

static const vm_kind KIND = {"mruby", RULES, sizeof RULES / sizeof *RULES, &sites, HAK_WORKLOAD_TRACED, 0};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *allocate(mrb_state *mrb, void *p, size_t n, void *heap)
{
    (void)mrb;
    if (!p) return n ? vm_taken(heap, vm_take(heap, n, HAK_SITES_SP()), n) : NULL;
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
    heap->reserve.tries = TRIES;
    return mrb;
}

/* mruby takes 48 KiB for a page of objects: of the usual 64 KiB, the error would leave nothing for what follows. */
void mruby_limit(vm_heap *heap, size_t limit)
{
    const size_t most = (size_t)128 << 10;
    hak_reserve_limit(&heap->reserve, heap->ctx, 0, limit, limit / 8 < most ? limit / 8 : most, NULL, NULL);
}
