/* Threads that a binding starts beside the program's. They take no signal and do not keep the process: where
 * main leaves by pthread_exit, the process ends with the last thread of the program, as it would without
 * them. What tells is /proc; where there is none, such a process does not end by itself. [any thread] */
#ifndef HKC_HELPER_H
#define HKC_HELPER_H

#include <pthread.h>
#include <stddef.h>

typedef void hkc_helper_fn(void);

/* Starts a detached thread with all signals blocked. stack: bytes; 0 = as the program's threads. A forked
 * child has no such thread. 0, or an error of pthread_create. Allocates nothing itself. */
int hkc_helper_begin(hkc_helper_fn *run, size_t stack, pthread_t *thread);

#endif
