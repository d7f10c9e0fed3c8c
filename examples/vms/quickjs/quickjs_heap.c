/* QuickJS's allocator, JSMallocFunctions; the functions get the heap. quickjs.patch tells the function that asks
 * for the size of a block, too, which heap it is, and switches off the pools of small blocks. */
#include "quickjs_heap.h"

#include "vm_take.h"

/* ---- What the memory is for ---------------------------------------------------------------------------- */

enum { OBJECT = 1, SHAPE, STRING, ATOM, ARRAY, FUNCTION, CODE, BUFFER, MAP, NUMBER, RUNTIME, LABELS = RUNTIME };
static const char *const NAMES[LABELS] = {"object",   "shape", "string", "atom", "array",  "function",
                                          "code", "buffer", "map",  "number", "runtime"};
/* What is in no rule, such as js_malloc, takes memory for its callers. The properties of an object are made with
 * it, and have its label. */
static const sites_rule RULES[] = {
    {"js_array_buffer", BUFFER},
    {"JS_NewObject", OBJECT},
    {"js_new_shape", SHAPE},
    {"js_clone_shape", SHAPE},
    {"add_shape_property", SHAPE},
    {"resize_properties", SHAPE},
    {"resize_shape_hash", SHAPE},
    {"js_alloc_string", STRING},
    {"js_sub_string", STRING},
    {"js_new_string", STRING},
    {"string_buffer", STRING},
    {"JS_NewSymbol", STRING},
    {"JS_ConcatString", STRING},
    {"__JS_NewAtom", ATOM},
    {"JS_NewAtom", ATOM},
    {"JS_ResizeAtom", ATOM},
    {"JS_InitAtoms", ATOM},
    {"js_create_array", ARRAY},
    {"js_allocate_fast_array", ARRAY},
    {"expand_fast_array", ARRAY},
    {"js_array_", ARRAY},
    {"js_closure", FUNCTION},
    {"get_var_ref", FUNCTION},
    {"js_build_", FUNCTION},
    {"js_function_", FUNCTION},
    {"js_generator", FUNCTION},
    {"async_func", FUNCTION},
    {"js_async", FUNCTION},
    {"js_promise", FUNCTION},
    {"JS_NewCFunction", FUNCTION},
    {"array_buffer", BUFFER},
    {"js_typed_array", BUFFER},
    {"js_create_function", CODE},
    {"js_create_module", CODE},
    {"js_new_function_def", CODE},
    {"js_parse", CODE},
    {"resolve_", CODE},
    {"push_scope", CODE},
    {"add_", CODE},
    {"cpool_", CODE},
    {"emit_", CODE},
    {"dbuf_", CODE},
    {"lre_", CODE},
    {"js_compile_regexp", CODE},
    {"__JS_Eval", CODE},
    {"js_new_module", CODE},
    {"JS_AddModule", CODE},
    {"JS_NewCModule", CODE},
    {"js_map_", MAP},
    {"map_", MAP},
    {"js_weakref", MAP},
    {"js_bigint", NUMBER},
    {"js_atof", NUMBER},
    {"JS_NewRuntime", RUNTIME},
    {"JS_NewContext", RUNTIME},
    {"JS_NewClass", RUNTIME},
    {"JS_AddIntrinsic", RUNTIME},
    {"JS_SetPropertyFunctionList", RUNTIME},
    {"js_std_", RUNTIME},
    {NULL, 0},
};
static sites places;

/* The size of a packed block is looked for, and QuickJS asks often: nothing is packed. */
static const vm_kind KIND = {"QuickJS", NAMES, LABELS, RULES, &places, HAK_WORKLOAD_COUNTED, HAK_NONE};

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *take(void *heap, size_t n)
{
    return vm_take(heap, n, SITES_SP());
}

static void *take_zeroed(void *heap, size_t count, size_t n)
{
    return vm_take_zeroed(heap, count, n, SITES_SP());
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
static void collect_soon(void *runtime)
{
    JS_SetGCThreshold(runtime, 0);
}

void quickjs_limit(JSRuntime *runtime, vm_heap *heap, size_t limit)
{
    vm_heap_limit(heap, limit, collect_soon, runtime);
}
