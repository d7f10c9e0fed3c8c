/* The state of an instance that WAMR's public interface does not show, by its private headers. */
#include "wasm_runtime.h"

#include "wasm_interp.h"
#include "wasm_runtime_common.h"

#include "aot.h"

#if !WASM_DISABLE_HW_BOUND_CHECK || !WASM_MEM_ALLOC_WITH_USER_DATA || !WASM_MEM_ALLOC_WITH_USAGE ||          \
    !WASM_ENABLE_LIBC_WASI || WASM_ENABLE_SHRUNK_MEMORY
#error "hakmem: these settings of WAMR do not serve, see hakmem/wasm_wamr.h"
#endif
#if WASM_ENABLE_MULTI_MODULE || WASM_ENABLE_MULTI_MEMORY || WASM_ENABLE_SHARED_MEMORY || WASM_ENABLE_GC
#error                                                                                                       \
    "hakmem: a reset restores one memory, of the guest's own, and tables of indices, see hakmem/wasm_wamr.h"
#endif

#include <string.h>

static WASMModuleInstance *inside(wasm_module_inst_t instance)
{
    return (WASMModuleInstance *)instance;
}

/* Modules that were compiled ahead have another structure: what looks into one asks `aot` first. */
#if WASM_ENABLE_AOT
#define IF_COMPILED(module, ...)                                                                             \
    if (((const WASMModuleCommon *)(module))->module_type == Wasm_Module_AoT) return __VA_ARGS__
#else
#define IF_COMPILED(module, ...)
#endif

static WASMModuleInstanceExtraCommon *extra_of(const WASMModuleInstance *inst)
{
    IF_COMPILED(inst, hkw_wamr_aot_extra(inst));
    return &inst->e->common;
}

bool hkw_wamr_compiled(wasm_module_t module)
{
    return ((const WASMModuleCommon *)module)->module_type == Wasm_Module_AoT;
}

uint64_t hkw_wamr_initial_bytes(wasm_module_t module_)
{
    IF_COMPILED(module_, hkw_wamr_aot_initial_bytes(module_));
    const WASMModule *module = (const WASMModule *)module_;
    uint64_t bytes = 0;
    for (uint32 i = 0; i < module->import_memory_count; i++) {
        const WASMMemoryType *type = &module->import_memories[i].u.memory.mem_type;
        bytes += (uint64_t)type->num_bytes_per_page * type->init_page_count;
    }
    for (uint32 i = 0; i < module->memory_count; i++)
        bytes += (uint64_t)module->memories[i].num_bytes_per_page * module->memories[i].init_page_count;
    return bytes;
}

uint32_t hkw_wamr_max_pages(wasm_module_t module_)
{
    IF_COMPILED(module_, hkw_wamr_aot_max_pages(module_));
    const WASMModule *module = (const WASMModule *)module_;
    if (module->import_memory_count) return module->import_memories[0].u.memory.mem_type.max_page_count;
    return module->memory_count ? module->memories[0].max_page_count : 0;
}

void *hkw_wamr_memory(wasm_module_inst_t instance)
{
    WASMModuleInstance *inst = inside(instance);
    return inst->memory_count ? inst->memories[0]->memory_data : NULL;
}

void hkw_wamr_set_memory(wasm_module_inst_t instance, void *base, uint64_t bytes)
{
    WASMMemoryInstance *memory = inside(instance)->memories[0];
    /* A page of a memory that cannot grow is all of it, maybe 0 bytes. */
    memory->cur_page_count = bytes ? (uint32)(bytes / memory->num_bytes_per_page) : 0;
    memory->memory_data = base;
    memory->memory_data_size = bytes;
    memory->memory_data_end = base ? memory->memory_data + bytes : NULL;
    memory->heap_data = memory->heap_data_end = memory->memory_data_end;
#if WASM_ENABLE_AOT
    hkw_wamr_aot_bounds(memory, bytes);
#endif
}

/* An external reference is a pointer in argv. */
static uint32_t cells_of(const uint8 *types, uint32 count, uint32 cells)
{
    for (uint32 i = 0; i < count; i++)
        cells += types[i] == VALUE_TYPE_EXTERNREF;
    return cells;
}

void hkw_wamr_cells(wasm_module_inst_t instance, wasm_function_inst_t function, uint32_t *arguments,
                    uint32_t *results)
{
    const WASMFuncType *type = wasm_runtime_get_function_type(function, inside(instance)->module_type);
    *arguments = cells_of(type->types, type->param_count, type->param_cell_num);
    *results = cells_of(type->types + type->param_count, type->result_count, type->ret_cell_num);
}

/* ---- Globals, tables, dropped segments ----------------------------------------------------------- */

bool hkw_wamr_copyable(wasm_module_t module_)
{
    IF_COMPILED(module_, hkw_wamr_aot_copyable(module_));
    const WASMModule *module = (const WASMModule *)module_;
    for (uint32 i = 0; i < module->import_table_count; i++)
        if (module->import_tables[i].u.table.table_type.elem_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < module->table_count; i++)
        if (module->tables[i].table_type.elem_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < module->import_global_count; i++)
        if (module->import_globals[i].u.global.type.val_type == VALUE_TYPE_EXTERNREF) return false;
    for (uint32 i = 0; i < module->global_count; i++)
        if (module->globals[i].type.val_type == VALUE_TYPE_EXTERNREF) return false;
    return true;
}

static size_t bitmap_bytes(const bh_bitmap *bitmap)
{
    return bitmap ? (bitmap->end_index - bitmap->begin_index + 7) / 8 : 0;
}

size_t hkw_wamr_state_size(wasm_module_inst_t instance)
{
    const WASMModuleInstance *inst = inside(instance);
    size_t n = inst->global_data_size + sizeof(uint32_t);
    n += bitmap_bytes(extra_of(inst)->data_dropped) + bitmap_bytes(extra_of(inst)->elem_dropped);
    for (uint32 i = 0; i < inst->table_count; i++)
        n += sizeof(uint32) + inst->tables[i]->cur_size * sizeof(table_elem_type_t);
    return n;
}

/* Writes n bytes at `at` to the saved state or reads them from it; returns where the next begin. */
static char *transfer(char *at, void *live, size_t n, bool save)
{
    if (n) memcpy(save ? at : live, save ? live : at, n);
    return at + n;
}

static void transfer_all(wasm_module_inst_t instance, char *at, bool save)
{
    WASMModuleInstance *inst = inside(instance);
    bh_bitmap *bitmaps[] = {extra_of(inst)->data_dropped, extra_of(inst)->elem_dropped};
    WASIContext *wasi = wasm_runtime_get_wasi_ctx((WASMModuleInstanceCommon *)instance);
    uint32_t exit_code = 0;
    at = transfer(at, wasi ? &wasi->exit_code : &exit_code, sizeof exit_code, save);
    at = transfer(at, inst->global_data, inst->global_data_size, save);
    for (size_t i = 0; i < 2; i++)
        if (bitmaps[i]) at = transfer(at, bitmaps[i]->map, bitmap_bytes(bitmaps[i]), save);
    for (uint32 i = 0; i < inst->table_count; i++) {
        WASMTableInstance *table = inst->tables[i];
        at = transfer(at, &table->cur_size, sizeof table->cur_size, save);
        at = transfer(at, table->elems, table->cur_size * sizeof(table_elem_type_t), save);
    }
}

void hkw_wamr_state_save(wasm_module_inst_t instance, void *state)
{
    transfer_all(instance, state, true);
}

void hkw_wamr_state_load(wasm_module_inst_t instance, const void *state)
{
    transfer_all(instance, (char *)(uintptr_t)state, false);
}

/* ---- The functions that run ----------------------------------------------------------------------- */

/* Names of exports, or of the module's name section where WAMR keeps it. */
static const char *name_of(const WASMModule *module, const WASMFunctionInstance *function, uint32 index)
{
    if (function->is_import_func) return function->u.func_import->field_name;
#if WASM_ENABLE_CUSTOM_NAME_SECTION
    if (function->u.func->field_name) return function->u.func->field_name;
#endif
    for (uint32 i = 0; i < module->export_count; i++)
        if (module->exports[i].kind == EXPORT_KIND_FUNC && module->exports[i].index == index)
            return module->exports[i].name;
    return NULL;
}

size_t hkw_wamr_stack(void *user, hak_wasm_frame *frames, size_t room)
{
    const hak_wasm_wamr *guest = user;
    const WASMModuleInstance *inst = inside(guest->instance);
    size_t n = 0;
    IF_COMPILED(inst, hkw_wamr_aot_stack(inst, guest->env, frames, room));
    for (const WASMInterpFrame *f = guest->env->cur_frame; f && n < room; f = f->prev_frame) {
        const WASMFunctionInstance *function = f->function;
        if (!function) continue; /* between the host and the guest */
        const uint32 index = (uint32)(function - inst->e->functions);
        frames[n++] =
            (hak_wasm_frame){name_of(inst->module, function, index),
                             function->is_import_func ? function->u.func_import->module_name : NULL, index};
    }
    return n;
}
