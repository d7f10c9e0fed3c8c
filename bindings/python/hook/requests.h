/* Requests of `python -m hakmem trim` and `report`, which come by a signal. */
#ifndef HKP_REQUESTS_H
#define HKP_REQUESTS_H

#include "base/core.h"

#include <signal.h>
#include <sys/types.h>

/* A process that listens has a mapping of this name with the number of the signal behind it, in
 * /proc/PID/maps: until it executes another program, or has a handler of its own for the signal. */
#define HKP_MARKER "hakmem-requests-1-signal-"

typedef enum hkp_wish { HKP_WISH_TRIM = 1, HKP_WISH_REPORT } hkp_wish;
/* Sends a wish to a process. It writes a report to /tmp/hakmem-NAME.json, where NAME is `name` as 10
 * hexadecimal digits, 40 bits that the asker makes up. attempt: from 0 on; a later one may take longer
 * (requests.c). Returns 0, or -1 with errno. */
HKP_API int hkp_request(pid_t process, int number, hkp_wish wish, unsigned attempt, unsigned long long name);

/* The signal, and the mapping of that name. NULL: none was to be had. */
#define HKP_REQUEST (SIGRTMIN + 8)
void *hkp_requests_publish(void);
void hkp_requests_withdraw(void *marker);

/* In the handler of the signal. What no handler can do is left to Python's main thread: `interrupt`, which is
 * PyErr_SetInterruptEx, has that call hkp_requests_answer. */
void hkp_requests_follow(const siginfo_t *info, int (*interrupt)(int number));
void hkp_requests_answer(void);
void hkp_requests_in_child(void);

#endif
