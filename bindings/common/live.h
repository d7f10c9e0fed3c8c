/* Looking at a process while it runs: a socket of its owner's, at which who connects gets a report, and a
 * signal that asks for one. A thread of its own does both, with all signals blocked; nothing that a peer does
 * or leaves undone is waited for by any other thread.
 *
 *     hkc_live_options options = {.place = "on", .report = put_json};
 *     char error[HKC_LIVE_ERROR];
 *     if (!hkc_live_begin(&options, error)) complain(error);
 *
 * The socket belongs to the user of the process (mode 0600, in a folder of mode 0700 unless the place is a
 * path), who connects is asked for its user (SO_PEERCRED): another one than that, and not root, gets nothing.
 * One for each process. Who makes one in that folder removes those of processes that are gone.
 * The handler of the signal is put in once: where the program then puts in its own, a forked child has that.
 * On macOS and Windows there is none of this, and hkc_live_begin says so. */
#ifndef HKC_LIVE_H
#define HKC_LIVE_H

#include "common/json.h"

#include <sys/types.h>

enum { HKC_LIVE_ERROR = 256, HKC_LIVE_PATH = 108 };

typedef struct hkc_live_options {
    /* "on" = where `hakmem attach PID` looks; or a path with a slash, in which %p is the process; NULL = no
     * socket. */
    const char *place;
    int signal; /* 0 = none */
    /* On the thread: writes a report; 0 or errno. The writer's sink is memory and does not wait. */
    int (*report)(void *user, hkc_json *w);
    void (*signalled)(void *user); /* on the thread, once the signal came */
    void *user;
} hkc_live_options;

/* Once in a process. The options are copied, the texts are not. false = error says why, in a line; what could
 * be had is there. */
bool hkc_live_begin(const hkc_live_options *options, char error[HKC_LIVE_ERROR]);
/* Waits for a call of the options' functions that goes on. The socket is gone then, and nothing is called any
 * more. In a child of a fork it is hkc_live_in_child(): socket and thread are the parent's. */
void hkc_live_end(void);
/* In a forked child, where there is no such thread: what it inherits is forgotten. Safe in handlers of
 * pthread_atfork. hkc_live_begin may follow as soon as threads may be made. */
void hkc_live_in_child(void);

/* Ends the thread until hkc_live_resume, while the socket stays and who connects waits: for a fork by a
 * runtime that warns of forks beside threads. false = the thread goes on, since it answers somebody or does
 * not wake within 20 ms. The time between the two is short, and one thread calls both. */
bool hkc_live_pause(void);
/* NULL = the thread is there again, or was not paused; else why there can be none. */
const char *hkc_live_resume(void);

/* Reads a setting: "on", "off", or a path, which has a slash. Somebody who wrote "yes" or "maybe" does not want a
 * socket of that name in the current folder. *place = the setting, NULL = off. NULL = taken; else what is expected. */
const char *hkc_live_setting(const char *text, const char **place);

#ifndef _WIN32
/* Where the socket of a process is for "on": /tmp/hakmem-USER/PROCESS. */
void hkc_live_path(char out[HKC_LIVE_PATH], uid_t user, pid_t process);
#endif

/* USR1, SIGUSR1 or a number; 0 = no signal that a program can spare. */
int hkc_live_signal(const char *name);

#endif
