/* Which task of asyncio asks for memory: one more frame of a stack, the outermost. */
#ifndef HKP_TASK_H
#define HKP_TASK_H

#include "lines/stack.h"

/* The frame for the task that runs; 0 = none with a name that the program gave. Nothing is allocated, and no
 * code of Python runs. stack: that of this thread, with its frames. */
uintptr_t hkp_task_now(const hkp_stack *stack, const hkp_stack_frame *frames);
bool hkp_task_is(uintptr_t frame);
/* "task NAME" */
const char *hkp_task_name(uintptr_t frame);

#endif
