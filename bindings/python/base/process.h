/* What the operating system knows of the process that a report is of. */
#ifndef HKP_PROCESS_H
#define HKP_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* The program begins: what the process did before, under the program that became this one by exec, is not
 * its own. */
void hkp_process_begin(void);
/* This process is a copy that reports on the one it was made of: what the functions below and those of
 * resident.h tell is of that one. cpu: hkp_process_cpu() of it. */
void hkp_process_copied(pid_t of, pid_t parent, uint64_t cpu);

pid_t hkp_process(void);
pid_t hkp_process_parent(void);
/* Microseconds of processor time since the program began; in a child, since it was forked. */
uint64_t hkp_process_cpu(void);

#endif
