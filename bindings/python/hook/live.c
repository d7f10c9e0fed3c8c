#define _GNU_SOURCE
#include "hook/live.h"

#include "common/live.h"
#include "hook/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char place[HKC_LIVE_PATH]; /* "" = none */
static bool planned;
static pid_t owner; /* has a socket; a child of vfork is another process that shares this memory */
static char error[HKC_LIVE_ERROR];

/* On a thread that Python does not know. The thread of the process's end may be waited for, so nothing here asks for
 * the GIL. */
static int report(void *unused, hkc_json *w)
{
    (void)unused;
    hkp_report_json(w, false);
    return 0;
}

static const char *begin(void)
{
    const hkc_live_options options = {.place = place, .report = report};
    owner = getpid();
    if (hkc_live_begin(&options, error)) return NULL;
    owner = 0;
    return error;
}

/* The thread is gone, and the socket is the parent's. */
static void after_fork(void)
{
    hkc_live_in_child();
    owner = 0;
}

static const char *start(const char *at)
{
    static bool watched;
    if (owner == getpid()) return "there is a socket already";
    if (strlen(at) >= sizeof place) return strerror(ENAMETOOLONG);
    strcpy(place, at);
    if (!watched && pthread_atfork(NULL, NULL, after_fork) == 0) watched = true;
    return begin();
}

const char *hkp_live_start(const char *at)
{
    return start(at);
}

void hkp_live_plan(const char *at, bool first)
{
    if (strcmp(at, "on") != 0 && !strstr(at, "%p") && !first) return;
    planned = strlen(at) < sizeof place;
    if (planned) strcpy(place, at);
    else fprintf(stderr, "hakmem: HAKMEM_LIVE: no socket at %.60s...: the name is too long\n", at);
}

bool hkp_live_first_call(void)
{
    char at[sizeof place];
    if (!planned) return false;
    strcpy(at, place);
    const char *wrong = start(at);
    if (wrong) fprintf(stderr, "hakmem: HAKMEM_LIVE: %s\n", wrong);
    return !wrong;
}

void hkp_live_in_child(void)
{
    if (place[0] && (strcmp(place, "on") == 0 || strstr(place, "%p"))) begin();
}

void hkp_live_end(void)
{
    if (owner != 0 && owner == getpid()) hkc_live_end();
}
