/* A program that is started, waited for and killed at a deadline. */
#ifndef HKW_PROCESS_H
#define HKW_PROCESS_H

#include <stdbool.h>

/* How a program ended. */
typedef struct hkw_end {
    bool late;  /* it was killed at the deadline, or runs on, as nobody may kill it */
    bool taken; /* the host ignores SIGCHLD, or another thread took the status, which is 0 then */
    int status; /* as of waitpid */
    unsigned milliseconds, cpu_milliseconds;
} hkw_end;

/* Starts a program whose standard input is one descriptor and whose output is another, and waits for its end;
 * at the deadline it is killed. Returns 0, or errno: it cannot be started. */
int hkw_process_run(const char *const *program, int input, int output, unsigned milliseconds, hkw_end *end);

#endif
