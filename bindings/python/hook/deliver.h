/* Where reports go: at exit, when a signal ends the process, and when somebody asks for one. */
#ifndef HKP_DELIVER_H
#define HKP_DELIVER_H

#include "base/core.h"

/* From now on a report is due. name: a file, %p in it is the process's number; without %p only `first`
 * processes write it. "-": on what stderr is now, of a `first` process; nothing where there is none. First:
 * not started by a process under hakmem; it says if the file cannot be written. */
void hkp_report_plan(const char *name, bool first);
extern bool hkp_report_due;
/* Writes it now; later calls in this process do nothing. The file is whole or not there: what is written
 * beside it gets its name at the end. */
void hkp_report_write(bool gil);
/* Python begins anew in this process: at its end the report is made again, in place of the one before. */
void hkp_report_renew(void);
/* What is to be done last: without the GIL, when Python is gone or about to be cut off. */
void hkp_report_finish(void);
/* The same by a copy of the process that ends now, maybe in a signal handler: no lock is waited for without
 * an end. false = there is none, because this thread or another one holds such a lock. */
bool hkp_report_leave(void);
/* Whether it is due in a stream, a pipe or a device. */
bool hkp_report_in_place(void);

typedef enum hkp_apart {
    HKP_APART_DONE,   /* or there was nothing to do */
    HKP_APART_FAILED, /* and said why */
    HKP_APART_CUT,    /* it takes longer, or crashed */
    HKP_APART_WAITED  /* it was cut off while it waited, for a lock that this thread or another one has */
} hkp_apart;

/* For signal handlers: a copy of the process writes the report, into `file` or, if that is NULL, where it is
 * due and not written yet, and on stderr shows it. Waits for it. A copy that was cut off after `milliseconds`
 * may be made again once the threads had time to go on. */
hkp_apart hkp_report_apart(const char *file, int milliseconds);
/* For a thread that has no lock: a copy of the process, made between two allocations of each thread's heap,
 * writes the report as JSON. 0, or errno; ETIMEDOUT: it was cut off, as above. On a thread that the program
 * does not know, one at a time: */
int hkp_report_beside(int fd, int milliseconds);
/* In the main thread, into a file, until hkc_milliseconds() says so much. */
int hkp_report_between(const char *file, int64_t until);
/* A copy of the process sends the signal again in a moment, after the handler that runs has returned. The main thread gets
 * it back for itself: the other threads of a busy program have locks most of the time. */
void hkp_report_again(int signal);

#endif
