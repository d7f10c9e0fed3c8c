/* QuickJS's allocator, JSMallocFunctions; the functions get the heap. quickjs.patch tells the function that asks
 * for the size of a block, too, which heap it is, and switches off the pools of small blocks. */
#include "quickjs_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

/* What is in no rule, such as js_malloc, takes memory for its callers. The properties of an object are made with
 * it, and have its label. */
static const hak_site_rule RULES[] = {
    {"js_array_buffer", "buffer"},
    {"JS_NewObject", "object"},
    {"js_new_shape", "shape"},
    {"js_clone_shape", "shape"},
    {"add_shape_property", "shape"},
    {"resize_properties", "shape"},
    {"resize_shape_hash", "shape"},
    {"js_alloc_string", "string"},
    {"js_sub_string", "string"},
    {"js_new_string", "string"},
    {"string_buffer", "string"},
    {"JS_NewSymbol", "string"},
    {"JS_ConcatString", "string"},
    {"__JS_NewAtom", "atom"},
    {"JS_NewAtom", "atom"},
    {"JS_ResizeAtom", "atom"},
    {"JS_InitAtoms", "atom"},
    {"js_create_array", "array"},
    {"js_allocate_fast_array", "array"},
    {"expand_fast_array", "array"},
    {"js_array_", "array"},
    {"js_closure", "function"},
    {"get_var_ref", "function"},
    {"js_build_", "function"},
    {"js_function_", "function"},
    {"js_generator", "function"},
    {"async_func", "function"},
    {"js_async", "function"},
    {"js_promise", "function"},
    {"JS_NewCFunction", "function"},
    {"array_buffer", "buffer"},
    {"js_typed_array", "buffer"},
    {"js_create_function", "code"},
    {"js_create_module", "code"},
    {"js_new_function_def", "code"},
    {"js_parse", "code"},
    {"resolve_", "code"},
    {"push_scope", "code"},
    {"add_", "code"},
    {"cpool_", "code"},
    {"emit_", "code"},
    {"dbuf_", "code"},
    {"lre_", "code"},
    {"js_compile_regexp", "code"},
    {"__JS_Eval", "code"},
    {"js_new_module", "code"},
    {"JS_AddModule", "code"},
    {"JS_NewCModule", "code"},
    {"js_map_", "map"},
    {"map_", "map"},
    {"js_weakref", "map"},
    {"js_bigint", "number"},
    {"js_atof", "number"},
    {"JS_NewRuntime", "runtime"},
    {"JS_NewContext", "runtime"},
    {"JS_NewClass", "runtime"},
    {"JS_AddIntrinsic", "runtime"},
    {"JS_SetPropertyFunctionList", "runtime"},
    {"js_std_", "runtime"},
};
static hak_sites *sites;

/* The size of a packed block is looked for, and QuickJS asks often: nothing is packed. */
static const vm_kind KIND = {"QuickJS", RULES, sizeof RULES / sizeof *RULES, &sites, HAK_WORKLOAD_COUNTED,
                             HAK_NONE};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *take(void *heap, size_t n)
{
    return vm_take(heap, n, HAK_SITES_SP());
}

static void *take_zeroed(void *heap, size_t count, size_t n)
{
    return vm_take_zeroed(heap, count, n, HAK_SITES_SP());
}

static void give(void *heap, void *p)
{
    vm_give(heap, p);
}

static void *resize(void *heap, void *p, size_t n)
{
    return vm_resize(heap, p, n);
}

static size_t size_of(void *heap, const void *p)
{
    return hak_block_size(((vm_heap *)heap)->ctx, p);
}

static const JSMallocFunctions functions = {take_zeroed, take, give, resize, size_of};

/* ---- The host's side ----------------------------------------------------------------------------------- */

vm_heap *quickjs_heap_new(hak_space *space, bool labels)
{
    return vm_heap_new(space, &KIND, labels);
}

JSRuntime *quickjs_runtime_new(vm_heap *heap)
{
    return JS_NewRuntime2(&functions, heap);
}

/* The next object that is made runs the collector, which then sets its threshold anew. */
static void collect_soon(hak_ctx *ctx, void *runtime, size_t committed, size_t limit)
{
    (void)ctx, (void)committed, (void)limit;
    JS_SetGCThreshold(runtime, 0);
}

void quickjs_limit(JSRuntime *runtime, vm_heap *heap, size_t limit)
{
    vm_heap_limit(heap, limit, collect_soon, runtime);
}
