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
    const char *refused;       /* why its instances have no images; NULL = they have */
    const char *alone_refused; /* the same unless it is part of a program, which has what it imports */
    hkw_table *tables;         /* malloc */
    uint32_t table_count;
    bool tables_change, tables_grow, changes_table, exports_table; /* as in hkw_module */
    uint32_t functions; /* that elements of tables may be, if these change */
    uint64_t passive, own;
    uint32_t memories;
};

struct hak_wasmtime_instance {
    hak_wasm_tenant *tenant;
    const hak_wasmtime_module *module;
    hak_wasmtime_instance *before; /* the part of the program that it may import from; in the same store */
    wasmtime_store_t *store;       /* of the last part alone, and so is `charged` */
    wasmtime_context_t *context;
    wasmtime_instance_t instance;
    size_t charged; /* for tables and its own structure */
    bool rests;     /* the memory does */
    /* Found when the first image or reset asks for them: */
    bool found;
    void *base; /* NULL = the module has no memory */
    wasmtime_memory_t memory;
    wasmtime_table_t *tables; /* if they change; behind the globals, and the functions behind the tables */
    wasmtime_func_t *functions;
    wasmtime_global_t globals[];
};

/* ---- engine.c ---- */

/* Settings that change the code: an engine takes none that was compiled with others. */
void hkw_engine_settings(wasm_config_t *config, size_t slot, size_t guard);

/* ---- tables.c ---- */

/* Charges the tenant for what the instance with all its parts takes of wasmtime's heap: their structures, and
 * what their tables may grow to, which the store is limited to. False = over a limit. */
bool hkw_tables_begin(hak_wasmtime_instance *instance);
/* What did not fit. */
const char *hkw_tables_refused(const hak_wasmtime_instance *instance);
void hkw_tables_end(hak_wasmtime_instance *instance);

/* ---- elements.c: what tables hold ---- */

/* What the tables of an instance held: of each its size, then of each element the number of the function among
 * those of all parts, from 1; 0 = none. */
typedef struct hkw_elements {
    hak_wasm_tenant *tenant; /* who pays */
    size_t charged;
    uint32_t numbers[];
} hkw_elements;

/* How the tables of a part of the whole are now; NULL, with the reason unless it is a limit or memory. */
hkw_elements *hkw_elements_take(hak_wasmtime_instance *whole, hak_wasmtime_instance *part, const char **why);
void hkw_elements_drop(hak_wasm_host *host, hkw_elements *elements);
/* Makes the tables equal to that. false = a table grew, which wasmtime cannot take back, or cannot grow. */
bool hkw_elements_restore(hak_wasmtime_instance *whole, hak_wasmtime_instance *part,
                          const hkw_elements *elements);

/* ---- instance.c ---- */

/* Before anybody uses the memories of the instance. */
void hkw_wake(hak_wasmtime_instance *instance);

#endif
