/* One shared context that serves all threads of a process, unknown to them: the ends of threads, fork, and
 * the passing of time. For libraries that are loaded into any program; Linux only. Allocates nothing itself;
 * what pthread keeps of handlers and keys may come from malloc. */
#ifndef HKC_PROCESS_H
#define HKC_PROCESS_H

#include <hakmem/hakmem.h>

/* Once, as soon as the context exists. Fork's handlers that are registered later run outside of the
 * context's locks, and may allocate.
 * thread_end: this thread's heap ends, its thread-local pointer has to forget it; others' destructors may
 * come after it. May be called again where the thread comes back.
 * in_child: after a fork, in the child; of all threads, the one that forked is left. */
void hkc_process_begin(hak_ctx *shared, void (*thread_end)(void), void (*in_child)(void));

/* This thread has a heap of the context, and is to end it. Where the process has no key left, heaps of
 * threads that ended go to others when these start. */
void hkc_process_thread(void);

/* Gives the context time, at most every 250 ms: nobody else does, and without it what threads left at hand
 * stays until others come. No lock of the context is held. [any thread] */
void hkc_process_tick(void);

#endif
