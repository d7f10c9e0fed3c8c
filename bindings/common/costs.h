/* What pages and calls of the operating system cost on this machine. */
#ifndef HKC_COSTS_H
#define HKC_COSTS_H

#include <hakmem/learn.h>

/* Measures and sets fault_ns, huge_ns and call_ns, by the calling thread's CPU time; takes some hundred
 * microseconds, and 2 MiB for as long. What cannot be measured stays as it is. */
void hkc_costs_measure(hak_learner_options *options);
/* The CPU time of the process so far. */
uint64_t hkc_costs_cpu_ns(void);

#endif
