/* Who asks for memory beside the stack: the domain and the thread. Kept with each stack of a profile as one
 * more frame, the last one, so that the core tells stacks of different askers apart. */
#ifndef HKP_ASKER_H
#define HKP_ASKER_H

#include "lines/stack.h"

/* The domain of the call of the allocator that goes on in this thread; HKP_DOMAINS = not known. */
extern _Thread_local uint8_t hkp_asking HKP_NEAR;

/* Names of Python's threads can be read from now on. With the GIL held, and not inside of an allocation. */
HKP_API void hkp_asker_prepare(void);
/* The frame: no address of code, and no line. stack: that of this thread, with its frames. */
uintptr_t hkp_asker_now(const hkp_stack *stack, const hkp_stack_frame *frames);
bool hkp_asker_is(uintptr_t frame);
/* Its name; NULL = not known. */
const char *hkp_asker_domain(uintptr_t frame);
const char *hkp_asker_thread(uintptr_t frame);

#endif
