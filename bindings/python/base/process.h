/* What the operating system knows of the process that a report is of. */
#ifndef HKP_PROCESS_H
#define HKP_PROCESS_H

#include "base/json.h"

#include <sys/resource.h>
#include <sys/types.h>

/* This process is a copy that reports on the one it was made of: what the functions below and those of
 * resident.h tell is of that one. */
void hkp_process_copied(pid_t of, pid_t parent, const struct rusage *usage);

pid_t hkp_process(void);
pid_t hkp_process_parent(void);
void hkp_process_usage(struct rusage *usage);
/* A file of it in /proc, to read; -1 = none. */
int hkp_process_open(const char *name);
/* The command line as a JSON array. */
void hkp_command_json(hkp_out *out);

#endif
