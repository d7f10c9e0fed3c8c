/* The same as state.c for modules that WAMR's compiler made ahead of time, in builds of WAMR that run them.
 * Their instances have the structure of the interpreters' but for what `e` points to. */
#include "wasm_runtime.h"

#if WASM_ENABLE_AOT

#include "aot_runtime.h"
#include "wasm_memory.h"
#include "wasm_runtime_common.h"

#include "aot.h"

static const AOTModule *module_of(const void *module)
{
    return module;
}

uint64_t hkw_wamr_aot_initial_bytes(const void *module)
{
    const AOTModule *m = module_of(module);
    uint64_t bytes = 0;
    for (uint32 i = 0; i < m->import_memory_count; i++)
        bytes += (uint64_t)m->import_memories[i].mem_type.num_bytes_per_page *
                 m->import_memories[i].mem_type.init_page_count;
    for (uint32 i = 0; i < m->memory_count; i++)
        bytes += (uint64_t)m->memories[i].num_bytes_per_page * m->memories[i].init_page_count;
    return bytes;
}

uint32_t hkw_wamr_aot_max_pages(const void *module)
{
    const AOTModule *m = module_of(module);
    if (m->import_memory_count) return m->import_memories[0].mem_type.max_page_count;
    return m->memory_count ? m->memories[0].max_page_count : 0;
}

bool hkw_wamr_aot_copyable(const void *module)
{
    const AOTModule *m = module_of(module);
    for (uint32 i = 0; i < m->import_table_count; i++)
        if (m->import_tables[i].table_type.elem_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < m->table_count; i++)
        if (m->tables[i].table_type.elem_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < m->import_global_count; i++)
        if (m->import_globals[i].type.val_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < m->global_count; i++)
        if (m->globals[i].type.val_type == VALUE_TYPE_EXTERNREF) return false;
    return true;
}

void hkw_wamr_aot_bounds(WASMMemoryInstance *memory, uint64_t bytes)
{
    static const MemBound none;
    if (bytes) {
        wasm_runtime_set_mem_bound_check_bytes(memory, bytes);
        return;
    }
    /* As in a new instance. */
    memory->mem_bound_check_1byte = memory->mem_bound_check_2bytes = memory->mem_bound_check_4bytes = none;
    memory->mem_bound_check_8bytes = memory->mem_bound_check_16bytes = none;
}

WASMModuleInstanceExtraCommon *hkw_wamr_aot_extra(const WASMModuleInstance *instance)
{
    return &((AOTModuleInstanceExtra *)instance->e)->common;
}

/* ---- The functions that run ----------------------------------------------------------------------- */

#if WASM_ENABLE_AOT_STACK_FRAME

static hak_wasm_frame frame_of(const AOTModule *m, uint32 index)
{
    if (index < m->import_func_count)
        return (hak_wasm_frame){m->import_funcs[index].func_name, m->import_funcs[index].module_name, index};
#if WASM_ENABLE_CUSTOM_NAME_SECTION
    for (uint32 i = 0; i < m->aux_func_name_count; i++)
        if (m->aux_func_indexes[i] == index) return (hak_wasm_frame){m->aux_func_names[i], NULL, index};
#endif
    for (uint32 i = 0; i < m->export_count; i++)
        if (m->exports[i].kind == EXPORT_KIND_FUNC && m->exports[i].index == index)
            return (hak_wasm_frame){m->exports[i].name, NULL, index};
    return (hak_wasm_frame){NULL, NULL, index};
}

/* As in aot_runtime.c, which alone knows it. */
typedef struct small_frame {
    uint32 index, offset;
} small_frame;

/* Small frames lie one behind the other, at the top of the guest's stack; others are a list, further out at
 * lower addresses. WAMR makes the outermost one for the function that the host calls, and knows what kind the
 * module has with WAMR_BUILD_DUMP_CALL_STACK only: nothing is believed that is not in the stack. */
size_t hkw_wamr_aot_stack(const WASMModuleInstance *instance, const WASMExecEnv *env, hak_wasm_frame *frames,
                          size_t room)
{
    const AOTModule *m = module_of(instance->module);
    const uint32 all = m->import_func_count + m->func_count;
    const char *bottom = (const char *)env->wasm_stack.bottom,
               *end = (const char *)env->wasm_stack.top_boundary;
    size_t n = 0;
    if (m->feature_flags & WASM_FEATURE_TINY_STACK_FRAME) {
        const small_frame *first = (const small_frame *)(const void *)bottom;
        const small_frame *f = (const small_frame *)(const void *)env->wasm_stack.top;
        while (f > first && n < room && (--f)->index < all)
            frames[n++] = frame_of(m, f->index);
        return n;
    }
    const bool unnamed = m->feature_flags & WASM_FEATURE_FRAME_NO_FUNC_IDX;
    const AOTFrame *f = (const AOTFrame *)env->cur_frame;
    while (n < room && (const char *)f >= bottom && (const char *)f + offsetof(AOTFrame, lp) <= end &&
           f->func_index < all) {
        if (!unnamed || !f->prev_frame) frames[n++] = frame_of(m, (uint32)f->func_index);
        end = (const char *)f;
        f = f->prev_frame;
    }
    return n;
}

#else

size_t hkw_wamr_aot_stack(const WASMModuleInstance *instance, const WASMExecEnv *env, hak_wasm_frame *frames,
                          size_t room)
{
    (void)instance, (void)env, (void)frames, (void)room;
    return 0;
}

#endif

#endif
