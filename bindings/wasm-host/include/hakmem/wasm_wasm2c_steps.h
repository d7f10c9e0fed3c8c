/* For the C of wasm2c whose steps are counted (hakmem_wasm2c_steps of the CMake package), which includes this
 * file. Hosts include hakmem/wasm_wasm2c.h.
 *
 * STABILITY  Experimental, as that. Since 0.1.
 */
#ifndef HAKMEM_WASM_WASM2C_STEPS_H
#define HAKMEM_WASM_WASM2C_STEPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Steps that this thread's guests have left; of the adapter. */
#ifdef __cplusplus
extern __thread int64_t hak_wasm_wasm2c_left;
#else
extern _Thread_local int64_t hak_wasm_wasm2c_left;
#endif
/* Traps with WASM_RT_TRAP_EXHAUSTION. */
void hak_wasm_wasm2c_end(void);

/* A step, and one more for each 64 bytes or elements of a range. */
#define HAK_WASM2C_STEP(range)                                                                               \
    do {                                                                                                     \
        hak_wasm_wasm2c_left -= 1 + (int64_t)((uint64_t)(range) / 64);                                       \
        if (__builtin_expect(hak_wasm_wasm2c_left < 0, 0)) hak_wasm_wasm2c_end();                            \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
