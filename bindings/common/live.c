#define _GNU_SOURCE
#include "common/live.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    HIGH_FD = 200,
    SEND_MILLISECONDS = 5000,
    STACK_BYTES = 256 << 10,
    FIRST_BYTES = 1 << 20,
    PAUSE_NANOSECONDS = 100000000
};

static hkc_live_options options;
static pthread_t thread;
static atomic_bool running, wanted, over;
static atomic_int phase;    /* what hkc_live_pause asks of the thread, and its answer */
static _Atomic(pid_t) task; /* the thread's number; 0 = it has not begun */
static bool paused;
static pid_t owner; /* whose thread it is: a child that was forked has none */
static pthread_mutex_t calling =
    PTHREAD_MUTEX_INITIALIZER; /* held while one of the options' functions runs */
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listening = -1;
static struct stat identity; /* of the socket: a program may close any number and use it again */

/* ---- Places --------------------------------------------------------------------------------------- */

void hkc_live_path(char out[HKC_LIVE_PATH], uid_t user, pid_t process)
{
    snprintf(out, HKC_LIVE_PATH, "/tmp/hakmem-%lu/%ld", (unsigned long)user, (long)process);
}

/* The folder of that path, which nobody else can write to or look into. */
static int make_folder(const char *path)
{
    char folder[HKC_LIVE_PATH];
    struct stat is;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return errno;
    if (lstat(folder, &is) != 0) return errno;
    return S_ISDIR(is.st_mode) && is.st_uid == geteuid() && (is.st_mode & 077) == 0 ? 0 : EPERM;
}

static bool is_word(const char *place)
{
    return strcmp(place, "on") != 0 && !strchr(place, '/');
}

const char *hkc_live_setting(const char *text, const char **place)
{
    const bool off = strcmp(text, "off") == 0;
    if (!off && is_word(text)) return "on, off or a path with a slash expected";
    *place = off ? NULL : text;
    return NULL;
}

static int plan(const char *place)
{
    char name[HKC_FILE_NAME];
    if (strcmp(place, "on") == 0) {
        hkc_live_path(address.sun_path, geteuid(), getpid());
        return make_folder(address.sun_path);
    }
    if (is_word(place)) return EINVAL;
    if (hkc_file_of_process(place, getpid(), name) != 0 || strlen(name) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, name, strlen(name) + 1);
    return 0;
}

/* ---- The socket ----------------------------------------------------------------------------------- */

/* What a process that is gone has left is a socket that nobody listens at. */
static bool remove_stale(const struct sockaddr_un *at)
{
    struct stat is;
    if (lstat(at->sun_path, &is) != 0 || !S_ISSOCK(is.st_mode) || is.st_uid != geteuid()) return false;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool stale =
        fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return stale && unlink(at->sun_path) == 0;
}

/* Sockets of the folder's other processes, which are named by their numbers. Of a process that is there, none
 * is touched: to be asked makes work. One that is not may listen all the same, in another container. */
static void sweep(int folder)
{
    const int own = dup(folder);
    DIR *all = own >= 0 ? fdopendir(own) : NULL;
    if (!all && own >= 0) close(own);
    for (const struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        char *end;
        const long process = strtol(entry->d_name, &end, 10);
        hkc_live_path(at.sun_path, geteuid(), (pid_t)process);
        const char *name = strrchr(at.sun_path, '/') + 1;
        if (process <= 0 || strcmp(name, entry->d_name) != 0) continue;
        if (kill((pid_t)process, 0) != 0 && errno == ESRCH) remove_stale(&at);
    }
    if (all) closedir(all);
}

/* Who makes a socket in the folder holds its lock until it listens: one that nobody listens at, and one whose
 * number another process gets, cannot be new then. -1 = it is another folder, or somebody keeps the lock, as
 * a process that was stopped does: nothing is swept. */
static int lock_folder(void)
{
    enum { ATTEMPTS = 50, BETWEEN_NANOSECONDS = 10000000 };
    char folder[HKC_LIVE_PATH];
    const struct timespec between = {0, BETWEEN_NANOSECONDS};
    if (strcmp(options.place, "on") != 0) return -1;
    memcpy(folder, address.sun_path, sizeof folder);
    *strrchr(folder, '/') = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < ATTEMPTS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
        nanosleep(&between, NULL);
    }
    if (fd >= 0) close(fd);
    return -1;
}

/* A child that was forked meanwhile has the file, too. */
static void unlock_folder(int fd)
{
    if (fd < 0) return;
    flock(fd, LOCK_UN);
    close(fd);
}

/* The mode is there before anybody can connect: nobody can before listen. */
static int open_socket(void)
{
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) return errno;
    const int fd = fcntl(made, F_DUPFD_CLOEXEC, HIGH_FD); /* out of the way of low numbers */
    if (fd >= 0) close(made);
    listening = fd >= 0 ? fd : made;
    const struct sockaddr *to = (struct sockaddr *)&address;
    int failed = bind(listening, to, sizeof address);
    if (failed && errno == EADDRINUSE && remove_stale(&address)) failed = bind(listening, to, sizeof address);
    if (failed) address.sun_path[0] = '\0';
    if (!failed)
        failed = chmod(address.sun_path, 0600) != 0 || listen(listening, 8) != 0 ||
                 fstat(listening, &identity) != 0;
    return failed ? errno : 0;
}

static bool is_ours(void)
{
    struct stat is;
    return listening >= 0 && fstat(listening, &is) == 0 && is.st_ino == identity.st_ino &&
           is.st_dev == identity.st_dev;
}

static void close_socket(void)
{
    if (is_ours()) close(listening);
    listening = -1;
    address.sun_path[0] = '\0';
}

/* ---- A peer --------------------------------------------------------------------------------------- */

/* The whole report before the first byte is sent: while it is made, the program's threads may have to wait
 * for what is looked at, and a peer may never read. */
typedef struct memory {
    char *bytes;
    size_t used, room;
} memory;

static int put(void *to, const char *bytes, size_t n)
{
    memory *m = to;
    if (m->room - m->used < n) {
        const size_t room = m->room ? 2 * m->room : FIRST_BYTES; /* n is at most a buffer of hkc_json */
        void *p = m->bytes ? mremap(m->bytes, m->room, room, MREMAP_MAYMOVE)
                           : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return ENOMEM;
        m->bytes = p;
        m->room = room;
    }
    memcpy(m->bytes + m->used, bytes, n);
    m->used += n;
    return 0;
}

static void send_all(int fd, const memory *m)
{
    const int64_t end = hkc_milliseconds() + SEND_MILLISECONDS;
    for (size_t done = 0; done < m->used && !atomic_load(&over);) {
        const ssize_t n = send(fd, m->bytes + done, m->used - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) done += (size_t)n;
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        struct pollfd one = {.fd = fd, .events = POLLOUT};
        if (n == 0 || errno != EAGAIN || hkc_milliseconds() >= end || poll(&one, 1, 100) < 0) return;
    }
}

static bool may_look(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* As who only wanted to know whether somebody listens, see remove_stale. */
static bool has_gone(int fd)
{
    struct pollfd one = {.fd = fd};
    return poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
}

/* false = the process has no descriptor left for one who waits. */
static bool serve(void)
{
    static hkc_json w;
    memory m = {NULL, 0, 0};
    const int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    if (!has_gone(fd) && may_look(fd)) {
        hkc_json_open(&w, put, &m);
        pthread_mutex_lock(&calling);
        const int error = atomic_load(&over) ? ESRCH : options.report(options.user, &w);
        pthread_mutex_unlock(&calling);
        if (hkc_json_close(&w) == 0 && error == 0) send_all(fd, &m);
        if (m.bytes) munmap(m.bytes, m.room);
    }
    close(fd);
    return true;
}

enum { GOES_ON, IS_ASKED, LEAVES };

/* On the thread: whether it was asked to pause. */
static bool leaves(void)
{
    int asked = IS_ASKED;
    return atomic_compare_exchange_strong(&phase, &asked, LEAVES);
}

/* ---- The thread ----------------------------------------------------------------------------------- */

/* The flag is for the thread; where the signal met another one, it is sent on to end the thread's wait. The
 * thread may have seen the flag before: what was sent on does not set it a second time. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int saved = errno;
    const bool runs = atomic_load(&running), here = runs && pthread_equal(pthread_self(), thread);
    const bool sent_on = here && info->si_code == SI_TKILL;
    if (!sent_on) atomic_store(&wanted, true);
    if (runs && !here) pthread_kill(thread, number);
    errno = saved;
}

static void run(void)
{
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    sigset_t waiting;
    sigfillset(&waiting);
    if (options.signal) sigdelset(&waiting, options.signal);
    const pid_t self = (pid_t)syscall(SYS_gettid);
    atomic_store(&task, self);
    /* One of a live view that ended may wake when there is another: it answers for nobody. */
    while (!atomic_load(&over) && atomic_load(&task) == self && !leaves()) {
        if (atomic_exchange(&wanted, false)) {
            pthread_mutex_lock(&calling);
            if (!atomic_load(&over)) options.signalled(options.user);
            pthread_mutex_unlock(&calling);
        }
        struct pollfd one = {.fd = is_ours() ? listening : -1, .events = POLLIN};
        if (ppoll(&one, 1, NULL, &waiting) > 0 && atomic_load(&phase) == GOES_ON && is_ours() && !serve())
            ppoll(NULL, 0, &pause, &waiting);
    }
}

/* Once: a forked child has the handler, unless the program has put in one of its own since. */
static void handle_signal(void)
{
    static bool handled;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigfillset(&action.sa_mask);
    if (!handled) handled = sigaction(options.signal, &action, NULL) == 0;
}

/* Signals come when the thread is known, so that none is sent on to nobody. */
static int begin_thread(void)
{
    const int error = hkc_helper_begin(run, STACK_BYTES, &thread);
    if (error) return error;
    owner = getpid();
    atomic_store(&running, true);
    return 0;
}

/* ---- A pause ---------------------------------------------------------------------------------------- */

static void forget_pause(void)
{
    paused = false;
    atomic_store(&phase, GOES_ON);
    atomic_store(&task, 0);
}

/* Wakes the thread, which finds nobody. */
static bool knock(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool woken = fd >= 0 && is_ours() &&
                       (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN);
    if (fd >= 0) close(fd);
    return woken;
}

/* One that has not begun yet is there. */
static bool is_there(void)
{
    const pid_t number = atomic_load(&task);
    return number == 0 || syscall(SYS_tgkill, getpid(), number, 0) == 0;
}

bool hkc_live_pause(void)
{
    enum { STEP_NANOSECONDS = 50000, STEPS = 400 }; /* 20 ms, unless somebody is answered just now */
    const struct timespec step = {0, STEP_NANOSECONDS};
    if (!atomic_load(&running) || owner != getpid() || options.signal) return false;
    atomic_store(&phase, IS_ASKED);
    bool gone = false;
    if (knock())
        for (int i = 0; i < STEPS && !(gone = !is_there()); i++)
            nanosleep(&step, NULL);
    int asked = IS_ASKED;
    if (!gone && atomic_compare_exchange_strong(&phase, &asked, GOES_ON)) return false;
    while (is_there())
        nanosleep(&step, NULL);
    atomic_store(&running, false);
    return paused = true;
}

const char *hkc_live_resume(void)
{
    if (!paused) return NULL;
    forget_pause();
    const int error = begin_thread();
    return error ? strerror(error) : NULL;
}

/* ---- For hosts ------------------------------------------------------------------------------------- */

bool hkc_live_begin(const hkc_live_options *given, char error[HKC_LIVE_ERROR])
{
    int socket_error = 0;
    options = *given;
    atomic_store(&over, false);
    atomic_store(&task, 0);
    if (options.place) {
        socket_error = plan(options.place);
        if (!socket_error) {
            const int folder = lock_folder();
            if (folder >= 0) sweep(folder);
            socket_error = open_socket();
            unlock_folder(folder);
        }
        if (socket_error) {
            if (is_word(options.place))
                snprintf(error, HKC_LIVE_ERROR, "no socket at '%.120s': on or a path with a slash expected",
                         options.place);
            else
                snprintf(error, HKC_LIVE_ERROR, "no socket at %.120s: %s",
                         strcmp(options.place, "on") == 0 ? "/tmp/hakmem-USER" : options.place,
                         strerror(socket_error));
            close_socket();
        }
    }
    if (listening < 0 && !options.signal) return !socket_error;
    const int thread_error = begin_thread();
    if (thread_error) {
        snprintf(error, HKC_LIVE_ERROR, "no thread for the socket: %s", strerror(thread_error));
        if (address.sun_path[0] != '\0') unlink(address.sun_path);
        close_socket();
    } else if (options.signal) {
        handle_signal();
    }
    return !socket_error && !thread_error;
}

void hkc_live_end(void)
{
    if (!atomic_load(&running) && !paused) return;
    if (owner != getpid()) { /* of a host without a handler of forks: the socket is the parent's */
        hkc_live_in_child();
        return;
    }
    pthread_mutex_lock(&calling);
    atomic_store(&over, true);
    pthread_mutex_unlock(&calling);
    if (address.sun_path[0] != '\0') unlink(address.sun_path);
}

void hkc_live_in_child(void)
{
    atomic_store(&running, false);
    forget_pause();
    pthread_mutex_init(&calling, NULL); /* the thread may have held it */
    close_socket();
}

int hkc_live_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP},   {"WINCH", SIGWINCH},
                 {"URG", SIGURG},   {"ALRM", SIGALRM}, {"PROF", SIGPROF}, {"VTALRM", SIGVTALRM}};
    char *end;
    const long number = strtol(name, &end, 10);
    if (end != name && *end == '\0') {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (known[i].number == number) return known[i].number;
        return number >= SIGRTMIN && number <= SIGRTMAX ? (int)number : 0;
    }
    if (strncmp(name, "SIG", 3) == 0) name += 3;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].number;
    return 0;
}
