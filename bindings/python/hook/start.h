/* What was asked for and cannot be had ends the start of the process: a program whose limit holds for nothing
 * would be taken for one that is limited. */
#ifndef HKP_START_H
#define HKP_START_H

#include <stdbool.h>

/* Ends the process with the status 2, once a line on stderr has said why. */
__attribute__((noreturn)) void hkp_start_end(void);
/* Says why hakmem does not come in. Returns if no limit was asked for; else the process ends. */
void hkp_start_without(const char *why, bool limited);

/* There is a limit, and Python has not begun. */
void hkp_start_limited(void);
/* Ends the process if there is a limit and Python has taken its own allocators since (PYTHONMALLOC, -X dev).
 * For calls that Python makes while it begins, and costs nothing later. */
void hkp_start_look(void);

#endif
