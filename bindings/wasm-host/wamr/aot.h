/* What state.c does for modules that were compiled ahead of time. Only in builds of WAMR that run them. */
#ifndef HAKMEM_WASM_WAMR_AOT_H
#define HAKMEM_WASM_WAMR_AOT_H

#include "guest.h"

struct WASMMemoryInstance;
struct WASMModuleInstance;
struct WASMExecEnv;
struct WASMModuleInstanceExtraCommon;

uint64_t hkw_wamr_aot_initial_bytes(const void *module);
uint32_t hkw_wamr_aot_max_pages(const void *module);
bool hkw_wamr_aot_copyable(const void *module);
/* A memory has this many bytes from now on: compiled code compares with bounds of its own. */
void hkw_wamr_aot_bounds(struct WASMMemoryInstance *memory, uint64_t bytes);
struct WASMModuleInstanceExtraCommon *hkw_wamr_aot_extra(const struct WASMModuleInstance *instance);
/* 0 = the module was compiled without frames. */
size_t hkw_wamr_aot_stack(const struct WASMModuleInstance *instance, const struct WASMExecEnv *env,
                          hak_wasm_frame *frames, size_t room);

#endif
