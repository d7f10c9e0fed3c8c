/* Substitutions make a name of a few hundred bytes stand for a text of gigabytes, or for hours of looking for
 * a pack of arguments, or of counting lifetimes, in what is never written. So both are bounded from outside:
 * a jump leaves the demangler when the text is full, and when its time is over. */
#include "names.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef HKR_DEMANGLE

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

/* What the demangler puts on the stack grows by the square of the length: 3 MiB here at most. */
enum { MANGLED_MOST = 1400, NAME_MICROSECONDS = 100000 };

typedef struct text {
    char bytes[HKR_NAME];
    size_t size;
} text;

static text plain;
static sigjmp_buf leave;
static _Thread_local volatile sig_atomic_t may_leave; /* a timer's signal may come to any thread */
static volatile sig_atomic_t ticks, of_rust;

/* The demangler of Rust calls malloc where it writes a name, out of which nothing may jump but what it calls
 * itself. So the first tick only ends its writing: by the second one it has written nothing for a while. */
static void on_time(int number)
{
    (void)number;
    if (may_leave && ++ticks > of_rust) siglongjmp(leave, 1);
}

static void add(const char *bytes, size_t size, void *to)
{
    text *t = to;
    if (ticks > 0 || size >= sizeof t->bytes - t->size) siglongjmp(leave, 1);
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

static bool demangle(const char *mangled, bool rust)
{
    volatile bool done = false;
    plain.size = 0;
    plain.bytes[0] = '\0';
    of_rust = rust;
    if (sigsetjmp(leave, 0) == 0) {
        may_leave = 1;
        done = (rust ? rust_demangle_callback : cplus_demangle_v3_callback)(mangled, DMGL_ANSI, add,
                                                                            &plain) != 0;
    }
    may_leave = 0;
    return done;
}

static bool demangle_in_time(hkr_names *names, const char *mangled)
{
    /* Again and again, in case that the first one comes to another thread. */
    const struct itimerval limit = {.it_value.tv_usec = NAME_MICROSECONDS,
                                    .it_interval.tv_usec = NAME_MICROSECONDS};
    const struct itimerval none = {.it_value.tv_usec = 0};
    struct itimerval left;
    ticks = 0;
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
    const bool done = demangle(mangled, true) || (ticks == 0 && demangle(mangled, false));
    setitimer(ITIMER_VIRTUAL, &none, &left);
    names->seconds += (double)(NAME_MICROSECONDS * (ticks + 1) - left.it_value.tv_usec) / 1e6;
    return done && ticks == 0;
}

/* It stays, as a signal may be on its way when the timer ends. It is left by a jump, after which the signal
 * must not stay blocked; nor may it be so from the start, by what started the command. */
static bool can_leave(void)
{
    static bool is_set;
    const struct sigaction end = {.sa_handler = on_time, .sa_flags = SA_NODEFER | SA_RESTART};
    sigset_t time;
    if (is_set) return true;
    sigemptyset(&time);
    sigaddset(&time, SIGVTALRM);
    is_set = sigaction(SIGVTALRM, &end, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &time, NULL) == 0;
    return is_set;
}

const char *hkr_plain_name(hkr_names *names, const char *mangled)
{
    if (mangled[0] != '_' || strlen(mangled) > MANGLED_MOST) return NULL;
    if (names->bytes > HKR_NAMES_BYTES || names->seconds > HKR_NAMES_SECONDS || !can_leave()) return NULL;
    if (!demangle_in_time(names, mangled)) return NULL;
    names->bytes += plain.size;
    return plain.bytes;
}

#else

const char *hkr_plain_name(hkr_names *names, const char *mangled)
{
    (void)names, (void)mangled;
    return NULL;
}

#endif
