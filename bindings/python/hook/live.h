/* `hakmem attach PID` on a Python process: common/live.h with the report of report.h. */
#ifndef HKP_LIVE_H
#define HKP_LIVE_H

#include "base/core.h"

/* place: as in common/live.h. Once Python runs, hkp_live_first_call makes the socket. Of a path without %p,
 * only a `first` process has one, see hkp_report_plan. */
void hkp_live_plan(const char *place, bool first);
/* With the GIL held, in the main thread. What fails is told in a line. True = there is a socket. */
bool hkp_live_first_call(void);
/* The same at once, for a program that asks itself. NULL = there is a socket, else why not. */
HKP_API const char *hkp_live_start(const char *place);
/* Around a fork by Python, with the GIL held: the thread ends before it where it is the only one beside
 * Python's own, of which Python from 3.12 on would warn, and comes again when the fork is over. */
HKP_API void hkp_live_before_fork(void);
HKP_API void hkp_live_after_fork(void);
/* In a forked child that goes on as a Python, with the GIL held. */
HKP_API void hkp_live_in_child(void);
/* The process ends: nobody is answered any more, and the socket goes. */
void hkp_live_end(void);
/* The same without waiting for an answer that is being made, for a process that ends at once. */
void hkp_live_leave(void);

#endif
