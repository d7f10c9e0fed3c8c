#define _GNU_SOURCE
#include "hook/signals.h"

#include "base/cpython.h"
#include "hook/deliver.h"
#include "hook/requests.h"
#include "hook/start.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* What a report may take, in milliseconds. A copy of the process that meets a lock waits in vain, and a busy
 * program often holds one: there are several attempts, and one that took longer is followed by one that may.
 * When they are over the report is made as that of _exit. */
enum { PATIENCE = 100, PATIENCE_MOST = 1000, ATTEMPTS = 7 };

/* Signals that end a process and can be expected to. */
static const int endings[] = {SIGTERM, SIGHUP, SIGINT};
enum { ENDINGS = sizeof endings / sizeof *endings };

static int (*next_sigaction)(int number, const struct sigaction *new, struct sigaction *old);
static sighandler_t (*next_signal)(int number, sighandler_t fn);
static pid_t owner;
static bool begun;
static bool hidden[NSIG];            /* our handler is in place */
static struct sigaction shown[NSIG]; /* and the program sees this */
static void *marker;
static int (*interrupt)(int number); /* PyErr_SetInterruptEx */
static int attempts, patience = PATIENCE;

static void handler(int number, siginfo_t *info, void *context);

static void find_next(const char *name, void *function)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(function, &address, sizeof address);
}

static int real_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!next_sigaction) find_next("sigaction", &next_sigaction);
    return next_sigaction(number, new, old);
}

static sighandler_t real_signal(int number, sighandler_t fn)
{
    if (!next_signal) find_next("signal", &next_signal);
    return next_signal(number, fn);
}

static bool ends(int number)
{
    for (int i = 0; i < ENDINGS; i++)
        if (endings[i] == number) return true;
    return false;
}

static bool is_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static int put_handler(int number, const struct sigaction *seen)
{
    struct sigaction ours = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int i = 0; i < ENDINGS; i++)
        sigaddset(&ours.sa_mask, endings[i]);
    sigaddset(&ours.sa_mask, HKP_REQUEST);
    shown[number] = *seen;
    hidden[number] = true;
    if (real_sigaction(number, &ours, NULL) == 0) return 0;
    hidden[number] = false;
    return -1;
}

/* A child of vfork shares this memory: what it does to its own dispositions is no matter of the parent's. */
static void withdraw(void)
{
    if (!marker || getpid() != owner) return;
    hkp_requests_withdraw(marker);
    marker = NULL;
}

/* ---- The handler --------------------------------------------------------------------------------- */

/* As if there were no handler. */
static void end(int number)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t one;
    real_sigaction(number, &by_default, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* The report before the process ends. */
static void report_and_end(int number)
{
    const hkp_apart done = getpid() == owner ? hkp_report_apart(NULL, patience) : HKP_APART_DONE;
    if (done == HKP_APART_DONE || done == HKP_APART_FAILED) {
        end(number);
    } else if (++attempts == ATTEMPTS) {
        hkp_report_leave();
        end(number);
    } else {
        if (done == HKP_APART_CUT) patience = patience * 4 < PATIENCE_MOST ? patience * 4 : PATIENCE_MOST;
        hkp_report_again(number);
    }
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    if (number == HKP_REQUEST) hkp_requests_follow(info, interrupt);
    else report_and_end(number);
    errno = saved;
}

static void in_child(void)
{
    owner = getpid();
    attempts = 0;
    patience = PATIENCE;
    hkp_requests_in_child();
}

/* Whether sigaction, for everybody, is the one below. */
static bool before_libc(void)
{
    Dl_info found, own;
    void *symbol = hkp_symbol("sigaction");
    return symbol && dladdr(symbol, &found) && dladdr(&begun, &own) && found.dli_fbase == own.dli_fbase;
}

static void watch_endings(void)
{
    struct sigaction now;
    owner = getpid();
    pthread_atfork(NULL, NULL, in_child);
    /* The first process of a container is not ended by a signal without a handler. */
    for (int i = 0; i < ENDINGS && hkp_report_due && owner != 1; i++)
        if (real_sigaction(endings[i], NULL, &now) == 0 && is_default(&now)) put_handler(endings[i], &now);
}

/* Python takes its handlers away when it ends, that of requests among them. */
static void listen(void (*tell_requests)(int number))
{
    struct sigaction now;
    if (!hkp_function("PyErr_SetInterruptEx", &interrupt) || real_sigaction(HKP_REQUEST, NULL, &now) != 0 ||
        !is_default(&now))
        return;
    tell_requests(HKP_REQUEST);
    if (real_sigaction(HKP_REQUEST, NULL, &now) == 0 && !is_default(&now) &&
        put_handler(HKP_REQUEST, &now) == 0)
        marker = hkp_requests_publish();
}

void hkp_signals_begin(void (*tell_requests)(int number))
{
    if (!before_libc()) return;
    if (!begun) watch_endings();
    begun = true;
    listen(tell_requests);
}

/* ---- Before libc --------------------------------------------------------------------------------- */

static bool is_watched(int number)
{
    return begun && number > 0 && number < NSIG && (number == HKP_REQUEST || ends(number));
}

/* The program has its way with it. */
static void let_go(int number)
{
    if (getpid() == owner) hidden[number] = false;
    if (number == HKP_REQUEST) withdraw();
}

HKP_API int sigaction(int number, const struct sigaction *restrict new, struct sigaction *restrict old)
{
    hkp_start_look();
    if (!is_watched(number)) return real_sigaction(number, new, old);
    struct sigaction seen = shown[number], wanted;
    bool ours = hidden[number];
    if (new) wanted = *new;
    if (!new) {
        if (!ours) return real_sigaction(number, NULL, old);
    } else if (number != HKP_REQUEST && is_default(&wanted) && hkp_report_due && getpid() == owner &&
               owner != 1) {
        if (ours) shown[number] = wanted;
        else if (real_sigaction(number, NULL, &seen) != 0 || put_handler(number, &wanted) != 0) return -1;
    } else {
        let_go(number);
        int result = real_sigaction(number, &wanted, ours ? NULL : old);
        if (!ours || result != 0) return result;
    }
    if (old) *old = seen;
    return 0;
}

/* Whether calls are restarted after a handler depends on siginterrupt, of which only libc's signal knows. */
HKP_API sighandler_t signal(int number, sighandler_t fn)
{
    hkp_start_look();
    if (!is_watched(number) || fn == SIG_ERR) return real_signal(number, fn);
    if (fn == SIG_DFL) {
        struct sigaction new = {.sa_handler = fn, .sa_flags = SA_RESTART}, old;
        return sigaction(number, &new, &old) == 0 ? old.sa_handler : SIG_ERR;
    }
    const bool ours = hidden[number];
    const sighandler_t seen = shown[number].sa_handler;
    let_go(number);
    const sighandler_t before = real_signal(number, fn);
    return ours && before != SIG_ERR ? seen : before;
}
