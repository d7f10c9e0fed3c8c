/* Signals: a report before one ends the process. Requests (requests.h) come by one more.
 *
 * The hook stands before sigaction and signal. Where the program leaves the default disposition of a signal
 * that ends it, the hook's handler is there and is not seen: the program is told that the disposition is the
 * default one. Whatever the program puts in has its way. */
#ifndef HKP_SIGNALS_H
#define HKP_SIGNALS_H

/* In the main thread, once. `tell_requests` has Python call hkp_requests_answer when the signal comes; it is
 * called where nobody has a handler for the signal yet. Nothing happens where the hook was not preloaded. */
void hkp_signals_begin(void (*tell_requests)(int number));

#endif
