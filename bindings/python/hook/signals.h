/* Signals: a report before one ends the process, and requests of `python -m hakmem trim` and `report`.
 *
 * The hook stands before sigaction and signal. Where the program leaves the default disposition of a signal
 * that ends it, the hook's handler is there and is not seen: the program is told that the disposition is the
 * default one. Whatever the program puts in has its way. */
#ifndef HKP_SIGNALS_H
#define HKP_SIGNALS_H

#include "base/core.h"

#include <sys/types.h>

/* In the main thread, once. `tell_trim` has Python call the function that trims when the signal comes; it is
 * called where nobody has a handler for the signal yet. Nothing happens where the hook was not preloaded. */
void hkp_signals_begin(void (*tell_trim)(int number));

/* A process that listens has a mapping of this name with the number of the signal behind it, in
 * /proc/PID/maps: until it executes another program, or has a handler of its own for the signal. */
#define HKP_MARKER "hakmem-requests-1-signal-"

typedef enum hkp_wish { HKP_WISH_TRIM = 1, HKP_WISH_REPORT } hkp_wish;
/* Sends a wish to a process. It writes a report to /tmp/hakmem-NAME.json, where NAME is `name` as 10
 * hexadecimal digits, 40 bits that the asker makes up. attempt: from 0 on; a later one may take longer
 * (signals.c). Returns 0, or -1 with errno. */
HKP_API int hkp_request(pid_t process, int number, hkp_wish wish, unsigned attempt, unsigned long long name);

#endif
