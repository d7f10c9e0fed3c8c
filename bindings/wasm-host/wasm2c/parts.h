/* What the files of the adapter share: which memories and tables there are, and where. */
#ifndef HAKMEM_WASM2C_PARTS_H
#define HAKMEM_WASM2C_PARTS_H

#include <hakmem/wasm_wasm2c.h>

#define HKW_WASM2C_PAGE UINT64_C(65536)

typedef enum hkw_wasm2c_kind {
    HKW_WASM2C_MEMORY,
    HKW_WASM2C_FUNCREFS,
    HKW_WASM2C_EXTERNREFS,
    HKW_WASM2C_KINDS
} hkw_wasm2c_kind;

/* The struct at this address, which is part of an instance or the embedder's, is a memory or a table of this
 * host from now on; false = no memory. */
bool hkw_wasm2c_add(hkw_wasm2c_kind kind, const void *part, hak_wasm_host *host);
void hkw_wasm2c_remove(hkw_wasm2c_kind kind, const void *part);
bool hkw_wasm2c_is_part(const void *p);
/* NULL = it is none. */
hak_wasm_host *hkw_wasm2c_part_host(hkw_wasm2c_kind kind, const void *part);
/* Calls fn for each one within `size` bytes at `from`. fn must not add or remove any. */
typedef void hkw_wasm2c_part_fn(void *user, hkw_wasm2c_kind kind, void *part);
void hkw_wasm2c_parts_within(const void *from, size_t size, hkw_wasm2c_part_fn *fn, void *user);

/* Stack that a function of hakmem's may need. */
enum { HKW_WASM2C_STACK = 64 << 10 };

/* Whether guests rely on signals: faults are traps, the end of the stack too. */
bool hkw_wasm2c_by_signals(void);
/* The host of the current tenant, or the one that hak_wasm_wasm2c_use named. */
hak_wasm_host *hkw_wasm2c_host(void);
/* The host that has what the memory or the table holds; the thread may have a tenant of another one by now,
 * or none. */
hak_wasm_host *hkw_wasm2c_host_of(hkw_wasm2c_kind kind, const void *part, const void *data);

#endif
