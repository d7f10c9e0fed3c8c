/* What the files of the wasmtime binding share. */
#ifndef HKW_WASMTIME_TYPES_H
#define HKW_WASMTIME_TYPES_H

#include <hakmem/wasm_wasmtime.h>

#include "module.h"

#define HKW_PAGE 65536

struct hak_wasmtime_module {
    hak_wasm_host *host;
    hak_wasm_tenant *tenant; /* who pays */
    size_t charged;          /* for code, and for what wasmtime keeps of the module */
    wasm_engine_t *engine;
    wasmtime_module_t *module;
    wasmtime_instance_pre_t *linked;
    uint32_t globals;
    const char *refused;
    hkw_table *tables; /* malloc */
    uint32_t table_count;
    uint64_t passive, own;
    uint32_t memories;
};

struct hak_wasmtime_instance {
    hak_wasm_tenant *tenant;
    const hak_wasmtime_module *module;
    wasmtime_store_t *store;
    wasmtime_context_t *context;
    wasmtime_instance_t instance;
    size_t charged; /* for tables and its own structure */
    bool rests;     /* the memory does */
    /* Found when the first image or reset asks for them: */
    bool found;
    void *base; /* NULL = the module has no memory */
    wasmtime_memory_t memory;
    wasmtime_global_t globals[];
};

/* Charges the tenant for what the instance takes of wasmtime's heap: its structure, and what its tables may
 * grow to, which the store is limited to. False = over a limit. */
bool hkw_tables_begin(hak_wasmtime_instance *instance);
/* What did not fit. */
const char *hkw_tables_refused(const hak_wasmtime_module *module);
void hkw_tables_end(hak_wasmtime_instance *instance);

#endif
