/* What the files of the wasmtime binding share. */
#ifndef HK_WASMTIME_TYPES_H
#define HK_WASMTIME_TYPES_H

#include <hakmem/wasm_wasmtime.h>

#include "module.h"

#define HK_WASM_PAGE 65536

struct hak_wasmtime_module {
    hak_wasm_host *host;
    wasm_engine_t *engine;
    wasmtime_module_t *module;
    wasmtime_instance_pre_t *linked;
    uint32_t globals;
    const char *refused;
};

struct hak_wasmtime_instance {
    hak_wasm_tenant *tenant;
    const hak_wasmtime_module *module;
    wasmtime_store_t *store;
    wasmtime_context_t *context;
    wasmtime_instance_t instance;
    /* Found when the first image or reset asks for them: */
    void *base;
    wasmtime_memory_t memory;
    wasmtime_global_t globals[];
};

#endif
