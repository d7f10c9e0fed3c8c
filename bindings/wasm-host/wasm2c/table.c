/* In place of wasm2c's table functions, by the linker's --wrap: elements are blocks of the tenant's. */
#include "parts.h"

#define TABLE(type, kind)                                                                                    \
    void __wrap_wasm_rt_allocate_##type##_table(wasm_rt_##type##_table_t *table, uint32_t n, uint32_t max);  \
    void __wrap_wasm_rt_free_##type##_table(wasm_rt_##type##_table_t *table);                                \
    uint32_t __wrap_wasm_rt_grow_##type##_table(wasm_rt_##type##_table_t *table, uint32_t delta,             \
                                                wasm_rt_##type##_t init);                                    \
                                                                                                             \
    void __wrap_wasm_rt_allocate_##type##_table(wasm_rt_##type##_table_t *table, uint32_t n, uint32_t max)   \
    {                                                                                                        \
        hak_wasm_host *host = hkw_wasm2c_host();                                                             \
        table->data = host ? hak_wasm_calloc(host, n ? n : 1, sizeof *table->data) : NULL;                   \
        if (table->data && !hkw_wasm2c_add(kind, table, host)) {                                             \
            hak_wasm_free(host, table->data);                                                                \
            table->data = NULL;                                                                              \
        }                                                                                                    \
        if (!table->data) wasm_rt_trap(WASM_RT_TRAP_OOB);                                                    \
        table->size = n;                                                                                     \
        table->max_size = max;                                                                               \
    }                                                                                                        \
                                                                                                             \
    void __wrap_wasm_rt_free_##type##_table(wasm_rt_##type##_table_t *table)                                 \
    {                                                                                                        \
        hak_wasm_free(hkw_wasm2c_host_of(kind, table, table->data), table->data);                            \
        hkw_wasm2c_remove(kind, table);                                                                      \
        table->data = NULL;                                                                                  \
    }                                                                                                        \
                                                                                                             \
    uint32_t __wrap_wasm_rt_grow_##type##_table(wasm_rt_##type##_table_t *table, uint32_t delta,             \
                                                wasm_rt_##type##_t init)                                     \
    {                                                                                                        \
        uint32_t before = table->size;                                                                       \
        if (delta == 0) return before;                                                                       \
        if (delta > table->max_size - before) return UINT32_MAX;                                             \
        hak_wasm_wasm2c_stack(HKW_WASM2C_STACK);                                                             \
        hak_wasm_host *host = hkw_wasm2c_host_of(kind, table, table->data);                                  \
        size_t size = (size_t)(before + delta) * sizeof *table->data;                                        \
        void *data = hak_wasm_realloc(host, table->data, size); /* in the context of the block */            \
        if (!data) return UINT32_MAX;                                                                        \
        table->data = data;                                                                                  \
        table->size = before + delta;                                                                        \
        for (uint32_t i = before; i < table->size; i++)                                                      \
            table->data[i] = init;                                                                           \
        return before;                                                                                       \
    }

TABLE(funcref, HKW_WASM2C_FUNCREFS)
TABLE(externref, HKW_WASM2C_EXTERNREFS)
