/* Copies of the process, for what waits for locks that the thread holds to which a signal came. What fork
 * would do first, and what malloc and stdio would wait for, may wait for that thread: a copy is made by clone
 * alone, with a stack of its own, and does without them. It sends no SIGCHLD and is found by no wait of the
 * program. */
#ifndef HKP_COPY_H
#define HKP_COPY_H

#include "base/core.h"

#include <sys/types.h>

typedef struct hkp_copied {
    pid_t process;
    int status;  /* what fn returned; -1 = it was cut off; -2 = there was no copy, and errno says why */
    bool waited; /* it was cut off while it waited, and had hardly computed */
} hkp_copied;

/* fn runs in a copy with all signals blocked, and is cut off after `milliseconds`. stack: of copies that are
 * made one after the other; NULL at first. Returns the copy's number, or -1 and errno. */
pid_t hkp_copy_start(char **stack, int (*fn)(void *of), void *of, int milliseconds);
/* As hkp_copy_start, and waits until the copy has ended. */
hkp_copied hkp_copy_run(char **stack, int (*fn)(void *of), void *of, int milliseconds);
/* For a thread that has none of the heap's locks, and takes them to make the copy. */
hkp_copied hkp_copy_run_held(char **stack, int (*fn)(void *of), void *of, int milliseconds);
/* For who ends the process, and does not let the interrupted thread go on: copies until one is not cut off.
 * One that waits does so for this thread, or for another one that goes on meanwhile. Where there are others,
 * and they hardly ever are without the heap's locks, these are taken for the last copies: that fails if this
 * thread has one. cut: told of each that was cut off. Returns the last one's status. */
int hkp_copy_insist(int (*fn)(void *of), void *of, void (*cut)(void *of, pid_t copy));
/* In a copy: from here on it may take so long; 0 = the time that it likes. */
void hkp_copy_grant(int milliseconds);

#endif
