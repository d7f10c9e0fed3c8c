/* The live view on a terminal: one screen, refreshed. Where standard output is none, the screen is printed
 * once. */
#include "top.h"
#include "parts.h"
#include "source.h"
#include "view.h"

#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Where the report has parts of the memory, the head has one line more. */
enum { HEAD_LINES = 4, FOOT_LINES = 1 };

#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"
#define REST_OF_LINE "\033[K\n"

typedef struct top {
    hkr_source source;
    hkr_view_options view;
    hkr_report *first, *before, *now;
    size_t total; /* rows that there are */
    size_t page;  /* rows on the screen */
    bool paused;
    char notice[HKR_ERROR];
} top;

/* ---- The terminal --------------------------------------------------------------------------------- */

static struct termios terminal;

static void restore(void)
{
    (void)!write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
}

/* May be called again. */
static bool enter(void)
{
    struct termios raw = terminal;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 && write(STDOUT_FILENO, ENTER, sizeof ENTER - 1) > 0;
}

static void handle(int number, void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

static void on_end(int number)
{
    restore();
    _exit(128 + number);
}

/* The wait for keys ends, and the screen is drawn. */
static void on_resize(int number)
{
    (void)number;
}

/* Only the default action stops the process for the shell; it is there behind the raise, or where nobody
 * could let the process go on. */
static void on_stop(int number)
{
    const int error = errno;
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, number);
    restore();
    handle(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    handle(number, on_stop);
    enter();
    errno = error;
}

/* Also where it was stopped by a signal that nobody sees. */
static void on_continue(int number)
{
    const int error = errno;
    (void)number;
    enter();
    errno = error;
}

static bool prepare(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    if (tcgetattr(STDIN_FILENO, &terminal) != 0) return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        handle(ends[i], on_end);
    handle(SIGWINCH, on_resize);
    handle(SIGTSTP, on_stop);
    handle(SIGCONT, on_continue);
    return enter();
}

static bool draw(top *t)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out) return false;
    const size_t around = HEAD_LINES + FOOT_LINES + (hkr_parts(t->now) > 0);
    t->page = size.ws_row > around + 1 ? size.ws_row - around : 1;
    t->view.rows = t->page;
    t->view.columns = size.ws_col;
    t->view.notice = t->notice;
    fputs("\033[H", out);
    bool ok = hkr_write_view(out, t->first, t->before, t->now, &t->view, &t->total);
    static const char keys[] = "q quit  l live  g growth  p peak  a allocated  t labels  m memory  w windows "
                               " arrows scroll  space pause";
    fprintf(out, "\033[J\033[%d;1H\033[7m%.*s\033[0m\033[K", size.ws_row, (int)t->view.columns, keys);
    ok = fclose(out) == 0 && ok;
    for (size_t done = 0; ok && done < n;) {
        const ssize_t more = write(STDOUT_FILENO, text + done, n - done);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) ok = false;
        else done += (size_t)more;
    }
    free(text);
    return ok;
}

/* ---- Keys ----------------------------------------------------------------------------------------- */

static void scroll(top *t, long by)
{
    const size_t most = t->total > t->page ? t->total - t->page : 0;
    if (by < 0) t->view.skip = t->view.skip > (size_t)-by ? t->view.skip - (size_t)-by : 0;
    else t->view.skip = t->view.skip + (size_t)by < most ? t->view.skip + (size_t)by : most;
}

/* Returns how many bytes it is. */
static size_t arrow(top *t, const char *code)
{
    const long page = (long)t->page;
    const struct {
        const char *code;
        long rows;
    } known[] = {{"\033[A", -1}, {"\033[B", 1}, {"\033[5~", -page}, {"\033[6~", page}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t n = strlen(known[i].code);
        if (strncmp(code, known[i].code, n) != 0) continue;
        scroll(t, known[i].rows);
        return n;
    }
    return 1;
}

static void order_by(top *t, hkr_order order)
{
    t->view.order = order;
    t->view.skip = 0;
}

/* false = quit. */
static bool press(top *t, char key)
{
    switch (key) {
    case 'q':
        return false;
    case 'l':
        order_by(t, HKR_BY_LIVE);
        break;
    case 'g':
        order_by(t, HKR_BY_GROWTH);
        break;
    case 'p':
        order_by(t, HKR_BY_PEAK);
        break;
    case 'a':
        order_by(t, HKR_BY_ALLOC);
        break;
    case 'm':
        t->view.parts = !t->view.parts;
        t->view.skip = 0;
        break;
    case 'w':
        t->view.windows = !t->view.windows;
        t->view.parts = false;
        t->view.skip = 0;
        break;
    case 't':
        t->view.labels = !t->view.labels;
        t->view.parts = t->view.windows = false;
        t->view.skip = 0;
        break;
    case ' ':
        t->paused = !t->paused;
        snprintf(t->notice, sizeof t->notice, "%s", t->paused ? "paused" : "");
        break;
    default:
        break;
    }
    return true;
}

/* ---- The loop ------------------------------------------------------------------------------------- */

/* The last one stays where there is no new one. */
static void refresh(top *t)
{
    char error[HKR_ERROR];
    hkr_report *r = hkr_source_load(&t->source, error);
    if (!r) {
        snprintf(t->notice, sizeof t->notice, "%s", error);
        return;
    }
    t->notice[0] = '\0';
    if (t->before != t->first) hkr_free(t->before);
    t->before = t->now;
    t->now = r;
}

static bool loop(top *t)
{
    const int64_t interval = (int64_t)(t->view.interval * 1000);
    int64_t next = hkc_milliseconds() + interval;
    while (draw(t)) {
        struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
        int64_t left = next - hkc_milliseconds();
        if (left > interval) next = hkc_milliseconds() + (left = interval); /* the clock went back */
        if (poll(&key, 1, left > 0 ? (int)left : 0) > 0) {
            char keys[16] = "";
            if (read(STDIN_FILENO, keys, sizeof keys - 1) <= 0) return true;
            for (const char *at = keys; *at != '\0'; at += *at == '\033' ? arrow(t, at) : 1)
                if (!press(t, *at)) return true;
        }
        if (hkc_milliseconds() < next) continue;
        if (!t->paused) refresh(t);
        next = hkc_milliseconds() + interval;
    }
    return false;
}

static bool once(top *t, const hkr_options *options)
{
    t->view.rows = options->top;
    t->view.interval = 0;
    const bool ok = hkr_write_view(stdout, t->first, t->before, t->now, &t->view, &t->total);
    if (ok) hkr_write_parts(stdout, t->now);
    return ok && fflush(stdout) == 0;
}

int hkr_top(const char *what, double interval, const hkr_options *options)
{
    char error[HKR_ERROR];
    top t = {.view = {.interval = interval, .end = "\n"}};
    t.view.order = options->by == HKR_PEAK_BYTES    ? HKR_BY_PEAK
                   : options->by == HKR_ALLOC_BYTES ? HKR_BY_ALLOC
                                                    : HKR_BY_LIVE;
    if (!hkr_source_find(&t.source, what, error) || !(t.first = hkr_source_load(&t.source, error))) {
        fprintf(stderr, "hakmem: %s\n", error);
        return 1;
    }
    t.before = t.now = t.first;
    t.view.labels = hkr_stacks(&t.now, 1) == 0;
    t.view.windows = options->windows;
    bool ok;
    if (isatty(STDOUT_FILENO) && prepare()) {
        t.view.end = REST_OF_LINE;
        ok = loop(&t);
        handle(SIGTSTP, SIG_DFL);
        handle(SIGCONT, SIG_DFL);
        restore();
    } else {
        ok = once(&t, options);
    }
    if (t.now != t.first) hkr_free(t.now);
    if (t.before != t.first && t.before != t.now) hkr_free(t.before);
    hkr_free(t.first);
    if (!ok) fputs("hakmem: the view cannot be written\n", stderr);
    return ok ? 0 : 1;
}

int hkr_snapshot(const char *what, FILE *out)
{
    char error[HKR_ERROR];
    hkr_source source;
    hkr_report *r = hkr_source_find(&source, what, error) ? hkr_source_load(&source, error) : NULL;
    if (!r) {
        fprintf(stderr, "hakmem: %s\n", error);
        return 1;
    }
    const bool ok = fwrite(r->text, 1, r->size, out) == r->size;
    hkr_free(r);
    return ok ? 0 : -1;
}
