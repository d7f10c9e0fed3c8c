/* What the files of the adapter share. */
#ifndef HAKMEM_WASM_WAMR_GUEST_H
#define HAKMEM_WASM_WAMR_GUEST_H

#include <hakmem/wasm_profile.h>
#include <hakmem/wasm_wamr.h>

typedef struct hkw_wamr_files hkw_wamr_files;

struct hak_wasm_wamr {
    hak_wasm_tenant *tenant;
    wasm_module_t module;
    wasm_module_inst_t instance;
    wasm_exec_env_t env;
    uint32_t stack_size;
    uint64_t serial;       /* of the instance; addresses come again */
    bool rests;            /* the memory does */
    hkw_wamr_files *files; /* its descriptors when it was new; NULL = it has none */
};

/* Instance and environment; false with a text in error. */
bool hkw_wamr_begin(hak_wasm_wamr *guest, char *error, uint32_t error_size);
void hkw_wamr_end(hak_wasm_wamr *guest);

/* ---- steps.c: the tenant's limit on steps -------------------------------------------------------- */

/* Why it would not hold for functions that WAMR runs while it makes an instance of the module; NULL = it
 * would, or there is none. */
const char *hkw_wamr_steps_refused(const hak_wasm_tenant *tenant, wasm_module_t module);
/* Before a call. false = it would not hold. */
bool hkw_wamr_steps_begin(hak_wasm_wamr *guest);

/* ---- machine_code.c: what the loader maps is the tenant's ---------------------------------------- */

/* Before a module is loaded on this thread. */
void hkw_wamr_code_begin(void);
/* Whether its code did not fit into a limit. */
bool hkw_wamr_code_refused(void);

/* ---- state.c: behind WAMR's public headers ------------------------------------------------------- */

/* Whether it is machine code. */
bool hkw_wamr_compiled(wasm_module_t module);
/* Bytes of the memories that the module asks for at first. */
uint64_t hkw_wamr_initial_bytes(wasm_module_t module);
/* Pages that its memory may grow to by its own word. */
uint32_t hkw_wamr_max_pages(wasm_module_t module);
/* Base of the linear memory; NULL = none, or one without a page, for which WAMR has no base. */
void *hkw_wamr_memory(wasm_module_inst_t instance);
/* The memory is at `base` and has this many bytes from now on; NULL and 0 = no page. What it was before is
 * the caller's affair. The number has to be the size of a memory of this module at some time. */
void hkw_wamr_set_memory(wasm_module_inst_t instance, void *base, uint64_t bytes);

/* Whether the state is made of numbers only, so that it can be copied. */
bool hkw_wamr_copyable(wasm_module_t module);
/* Bytes of globals, tables, marks of dropped segments and the exit code. */
size_t hkw_wamr_state_size(wasm_module_inst_t instance);
void hkw_wamr_state_save(wasm_module_inst_t instance, void *state);
void hkw_wamr_state_load(wasm_module_inst_t instance, const void *state);

/* Cells that the function reads from argv, and those that it writes there. */
void hkw_wamr_cells(wasm_module_inst_t instance, wasm_function_inst_t function, uint32_t *arguments,
                    uint32_t *results);

/* The functions that run, for profiles; user: the guest. */
size_t hkw_wamr_stack(void *user, hak_wasm_frame *frames, size_t room);

/* WAMR's fd_renumber is replaced by one that no guest can end the host with. Before a module is loaded. false
 * = no memory. */
bool hkw_wamr_files_begin(void);
/* File descriptors as they are now, in *files; NULL = the instance has none. What is open stays open until
 * the release, so that nothing else can be taken for it. false = no memory. */
bool hkw_wamr_files_hold(wasm_module_inst_t instance, hkw_wamr_files **files);
/* While there is WAMR. NULL is fine. */
void hkw_wamr_files_release(hkw_wamr_files *files);
/* Whether none of the instance's descriptors was opened, closed or renumbered since. */
bool hkw_wamr_files_same(wasm_module_inst_t instance, const hkw_wamr_files *files);

/* Which descriptors are open and with which rights, which instances may have in common: bytes of the table,
 * and the table. */
size_t hkw_wamr_files_size(wasm_module_inst_t instance);
void hkw_wamr_files_save(wasm_module_inst_t instance, void *table);
bool hkw_wamr_files_alike(wasm_module_inst_t instance, const void *table, size_t size);

#endif
