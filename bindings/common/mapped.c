#define _GNU_SOURCE
#include "common/mapped.h"

#include "callsite/image.h"
#include "common/report.h"
#include "common/report_json.h"

#include <hakmem/profile.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECES = 1 << 17,
    STACKS = 1 << 14,
    FRAMES = 64,
    PAGE = 4096,
    LIBRARIES = 64,
    NAME = 48,
    LINES = 8,
    WORTH = 1 << 20
};

/* A part of a mapping; all of it has one stack. */
typedef struct piece {
    uintptr_t start, end;
    size_t counts; /* bytes, for the limit */
    uint32_t stack;
    bool writable, shared;
} piece;

typedef struct tables {
    piece at[PIECES]; /* by address */
    hak_profile_counts *stacks[STACKS];
    hak_label labels[STACKS];
    size_t touched[STACKS], before[STACKS]; /* by the last measurement, and by the one before */
    char names[LIBRARIES][NAME];
    size_t sums[LIBRARIES], shared[LIBRARIES]; /* what was touched; of that, what forked children share */
    bool told[LIBRARIES];
} tables;

/* Who calls. */
typedef struct call {
    char library[NAME];
    uintptr_t frames[FRAMES];
    size_t depth;
} call;

static hkc_mapped_options options;
static tables *t;
static hak_space *space;
static hak_ctx *ctx;
static hak_profile_tally *tally;
static size_t count, stack_count, counted, touched_bytes, lines;
static bool grown; /* since the last measurement, by what may not have been touched */
static uint64_t measured_ns;
atomic_bool hkc_mapped_counts;
static atomic_flag busy = ATOMIC_FLAG_INIT;
/* In a signal handler of a thread that is in here, and in what is called from here. */
static _Thread_local volatile bool inside
#ifdef __GLIBC__ /* musl loads no library with such variables while the program runs */
    __attribute__((tls_model("initial-exec")))
#endif
    ;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        sched_yield();
}

/* For reports, which are also made in copies of a process in which somebody held the lock. */
static bool lock_soon(void)
{
    enum { TRIES = 10000 };
    for (int i = 0; i < TRIES; i++) {
        if (!atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) return true;
        sched_yield();
    }
    return false;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static void in_child(void)
{
    atomic_flag_clear(&busy); /* of a thread that is not there any more */
    inside = false;
}

bool hkc_mapped_begin(const hkc_mapped_options *o)
{
    options = *o;
    if (pthread_atfork(NULL, NULL, in_child) != 0) return false;
    atomic_store(&hkc_mapped_counts, true);
    return true;
}

static size_t measure_for_window(void);

/* A window is due a little before that of the heap, so that it begins with that one and not with the one after. */
static uint64_t shorter(uint64_t window_ns)
{
    enum { LEAST = 1000000 };
    const uint64_t ns = window_ns - window_ns / 16;
    return window_ns != 0 && ns < LEAST ? LEAST : ns;
}

/* With the first mapping, since many processes have none. false = there is no memory. */
static bool make_tables(void)
{
    enum { TABLE = 4 << 20 };
    if (t) return true;
    hak_space_options room = HAK_SPACE_OPTIONS_INIT;
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    room.reserve = (size_t)4 * TABLE;
    profile.mode = HAK_PROFILE_COUNTED;
    profile.depth = FRAMES;
    profile.table_bytes = TABLE;
    profile.window_ns = shorter(options.window_ns);
    profile.resident = measure_for_window;
    tables *pages = (void *)syscall(SYS_mmap, NULL, sizeof *pages, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, (off_t)0);
    if (pages == MAP_FAILED) return false;
    space = hak_space_new(&room);
    ctx = space ? hak_ctx_new(space, NULL) : NULL;
    if (!ctx || hak_profile_start(ctx, &profile) != 0) {
        hak_ctx_destroy(ctx);
        hak_space_delete(space);
        ctx = NULL;
        syscall(SYS_munmap, pages, sizeof *pages);
        return false;
    }
    tally = hak_profile_tally_of(ctx);
    t = pages;
    return true;
}

/* ---- Pieces --------------------------------------------------------------------------------------- */

/* Returns the first piece that ends above the address. */
static size_t place_of(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t->at[middle].end > address) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void made(const piece *p)
{
    hak_profile_counts *c = t->stacks[p->stack];
    if (c) c->alloc_blocks++;
}

static void gone(const piece *p)
{
    hak_profile_counts *c = t->stacks[p->stack];
    if (c) c->freed_blocks++;
}

/* Returns whether there is a piece now that begins at the address, if the address was inside of one. */
static bool split(uintptr_t address)
{
    const size_t i = place_of(address);
    if (i == count || t->at[i].start >= address) return true;
    if (count == PIECES) return false;
    memmove(&t->at[i + 1], &t->at[i], (count - i) * sizeof *t->at);
    count++;
    piece *p = &t->at[i];
    const double part = (double)(address - p->start) / (double)(p->end - p->start);
    p[0].counts = (size_t)((double)p[1].counts * part);
    p[1].counts -= p[0].counts;
    p[0].end = p[1].start = address;
    made(&t->at[i + 1]);
    return true;
}

static bool isolate(uintptr_t start, uintptr_t end)
{
    return split(start) && split(end);
}

static size_t bytes_in(uintptr_t start, uintptr_t end, bool writable)
{
    size_t sum = 0;
    for (size_t i = place_of(start); i < count && t->at[i].start < end; i++) {
        const uintptr_t from = t->at[i].start > start ? t->at[i].start : start;
        const uintptr_t to = t->at[i].end < end ? t->at[i].end : end;
        if (t->at[i].writable == writable) sum += to - from;
    }
    return sum;
}

static void give_back(size_t bytes)
{
    counted -= bytes;
    if (options.charge && bytes > 0) options.charge(counted, true);
}

/* The range is none of ours from now on; returns what it counted for, which it still does. */
static size_t take_out(uintptr_t start, uintptr_t end)
{
    if (!isolate(start, end)) return 0; /* no room to tell: it counts until all of it goes */
    const size_t i = place_of(start);
    size_t n = i, bytes = 0;
    for (; n < count && t->at[n].start < end; n++) {
        gone(&t->at[n]);
        bytes += t->at[n].counts;
    }
    memmove(&t->at[i], &t->at[n], (count - n) * sizeof *t->at);
    count -= n - i;
    return bytes;
}

static void cut(uintptr_t start, uintptr_t end)
{
    give_back(take_out(start, end));
}

/* There is no piece in the range. */
static void insert(uintptr_t start, uintptr_t end, uint32_t stack, bool writable, bool shared, size_t weight)
{
    const size_t i = place_of(start);
    if (count == PIECES) {
        give_back(weight);
        return;
    }
    memmove(&t->at[i + 1], &t->at[i], (count - i) * sizeof *t->at);
    t->at[i] = (piece){start, end, weight, stack, writable, shared};
    count++;
    made(&t->at[i]);
}

/* ---- Who calls ------------------------------------------------------------------------------------ */

static void find_caller(uintptr_t caller, call *c)
{
    hkc_image image;
    c->library[0] = '\0';
    if (hkc_image_at(caller, &image)) hkc_image_stem(&image, c->library, sizeof c->library);
    if (c->library[0] == '\0') strcpy(c->library, "the program");
    c->depth = options.frames(caller, c->frames, FRAMES);
    if (c->depth == 0) c->frames[c->depth++] = caller;
}

static hak_label label_of(const call *c)
{
    return hak_label_define(ctx, c->library);
}

static size_t library_of(hak_label label)
{
    return label < LIBRARIES ? label : 0;
}

/* Returns the number of the stack; 0 = that of all for which there is no room. */
static uint32_t stack_of(const call *c)
{
    const hak_label label = label_of(c);
    hak_profile_counts *found = hak_profile_counts_of(ctx, c->frames, (unsigned)c->depth, label);
    const size_t n = found ? (size_t)found->id + 1 : 0;
    if (n >= STACKS) return 0;
    t->stacks[n] = found;
    t->labels[n] = label;
    snprintf(t->names[library_of(label)], NAME, "%s", c->library);
    if (n >= stack_count) stack_count = n + 1;
    return (uint32_t)n;
}

static void tell(const call *c, size_t n)
{
    char line[160];
    bool *told = &t->told[library_of(label_of(c))];
    if (*told || lines == LINES || !options.tell) return;
    *told = true;
    lines++;
    snprintf(line, sizeof line, "the limit refused %.1f MiB that %s wanted to map itself, past malloc",
             (double)n / (1 << 20), c->library);
    options.tell(line);
}

/* ---- What was touched ----------------------------------------------------------------------------- */

/* Mappings without a resident page are passed over as a whole: allocators reserve terabytes. */
static size_t touched_of(int fd, const hkc_smaps *maps, size_t *from, const piece *p)
{
    size_t sum = 0, i = *from;
    while (i < maps->count && maps->at[i].end <= p->start)
        i++;
    *from = i;
    for (; i < maps->count && maps->at[i].start < p->end; i++) {
        const hkc_mapping *m = &maps->at[i];
        const uintptr_t start = m->start > p->start ? m->start : p->start,
                        end = m->end < p->end ? m->end : p->end;
        if (m->resident == 0) continue;
        sum += start == m->start && end == m->end ? m->resident : hkc_resident_within(fd, start, end);
    }
    return sum;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sum_up(int fd, const hkc_smaps *maps)
{
    hak_profile_tally *all = tally;
    size_t from = 0, sum = 0;
    memset(t->touched, 0, stack_count * sizeof *t->touched);
    memset(t->sums, 0, sizeof t->sums);
    memset(t->shared, 0, sizeof t->shared);
    touched_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t n = touched_of(fd, maps, &from, &t->at[i]);
        t->touched[t->at[i].stack] += n;
        t->sums[library_of(t->labels[t->at[i].stack])] += n;
        if (t->at[i].shared) t->shared[library_of(t->labels[t->at[i].stack])] += n;
        touched_bytes += n;
        if (t->at[i].writable) {
            sum += n;
            t->at[i].counts = n;
        }
    }
    grown = false;
    measured_ns = now_ns();
    if (sum != counted && options.charge) options.charge(sum, true);
    counted = sum;
    for (size_t i = 0; i < stack_count && all; i++) {
        if (t->stacks[i] && t->touched[i] != t->before[i])
            hak_profile_count_resize(all, t->stacks[i], t->before[i], t->touched[i]);
        t->before[i] = t->touched[i];
    }
}

/* Measures this process, with the lock held. */
static void measure(void)
{
    hkc_smaps maps;
    const int fd = hkc_proc_open(0, "pagemap");
    if (fd < 0) return;
    if (hkc_smaps_read(&maps, getpid())) {
        sum_up(fd, &maps);
        hkc_smaps_close(&maps);
    }
    close(fd);
}

/* Measures if that may come to less than what counts: not once more in a tenth of a second for memory that was
 * measured. With the lock held. Returns whether it did. */
static bool settle(void)
{
    enum { AGAIN_NS = 100000000 };
    const size_t before = counted;
    if (counted == 0 || (!grown && now_ns() - measured_ns < AGAIN_NS)) return false;
    measure();
    return counted < before;
}

/* ---- Windows -------------------------------------------------------------------------------------- */

/* Runs in hak_profile_turn, with the lock held. The context has no blocks: what its windows tell as resident bytes is
 * what was touched. */
static size_t measure_for_window(void)
{
    measure();
    return touched_bytes;
}

/* Begins a window if one is due. With the lock held. Keeps errno. */
static void turn(void)
{
    const int error = errno;
    if (t && options.window_ns != 0) hak_profile_turn(ctx);
    errno = error;
}

size_t hkc_mapped_resident(void)
{
    const int error = errno;
    if (t && options.window_ns != 0 && !inside) {
        inside = true;
        if (lock_soon()) {
            turn();
            unlock();
        }
        inside = false;
    }
    errno = error;
    return hkc_resident();
}

bool hkc_mapped_settle(void)
{
    const int error = errno;
    if (!t || !options.charge || inside) return false;
    inside = true;
    lock();
    const bool less = settle();
    unlock();
    inside = false;
    errno = error;
    return less;
}

/* Whether so much more may be writable. */
static bool take(const call *c, size_t bytes)
{
    if (options.charge && bytes > 0 && !options.charge(counted + bytes, false) &&
        (!settle() || !options.charge(counted + bytes, false))) {
        tell(c, bytes);
        errno = ENOMEM;
        return false;
    }
    counted += bytes;
    grown = grown || bytes > 0;
    return true;
}

/* ---- The calls ------------------------------------------------------------------------------------ */

static bool passes_on(uintptr_t caller)
{
    return inside || (caller >= options.low && caller < options.high);
}

static size_t whole_pages(size_t n)
{
    return n > SIZE_MAX - PAGE ? n : (n + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void enter(uintptr_t caller, call *c)
{
    inside = true;
    find_caller(caller, c);
    lock();
    turn();
}

static void leave(void)
{
    unlock();
    inside = false;
}

static void *map(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

void *hkc_mapped_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset, uintptr_t caller)
{
    call c;
    const bool own = (flags & MAP_ANONYMOUS) != 0, shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    if (passes_on(caller) || (!own && (flags & MAP_FIXED) == 0)) return map(at, n, prot, flags, fd, offset);
    const size_t size = whole_pages(n);
    const bool writable = own && (prot & PROT_WRITE) != 0;
    if (!t && !own) return map(at, n, prot, flags, fd, offset);
    enter(caller, &c);
    void *p = MAP_FAILED;
    if (!make_tables()) {
        p = map(at, n, prot, flags, fd, offset);
        leave();
        return p;
    }
    if (!writable || take(&c, size)) {
        p = map(at, n, prot, flags, fd, offset);
        if (p == MAP_FAILED && writable) {
            const int error = errno;
            give_back(size);
            errno = error;
        } else if (p != MAP_FAILED) {
            cut((uintptr_t)p, (uintptr_t)p + size);
            if (own)
                insert((uintptr_t)p, (uintptr_t)p + size, stack_of(&c), writable, shared,
                       writable ? size : 0);
        }
    }
    leave();
    return p;
}

int hkc_mapped_munmap(void *at, size_t n, uintptr_t caller)
{
    if (passes_on(caller) || !t) return (int)syscall(SYS_munmap, at, n);
    inside = true;
    lock();
    turn();
    const int status = (int)syscall(SYS_munmap, at, n);
    const int error = errno;
    if (status == 0) cut((uintptr_t)at, (uintptr_t)at + whole_pages(n));
    errno = error;
    leave();
    return status;
}

static void set_writable(uintptr_t start, uintptr_t end, bool writable, uint32_t stack)
{
    size_t less = 0;
    for (size_t i = place_of(start); i < count && t->at[i].start < end; i++) {
        piece *p = &t->at[i];
        if (p->writable == writable) continue;
        if (writable) {
            gone(p);
            p->stack = stack;
            made(p);
        } else less += p->counts;
        p->counts = writable ? p->end - p->start : 0;
        p->writable = writable;
    }
    give_back(less);
}

int hkc_mapped_mprotect(void *at, size_t n, int prot, uintptr_t caller)
{
    call c;
    const uintptr_t start = (uintptr_t)at, end = start + whole_pages(n);
    if (passes_on(caller) || !t) return (int)syscall(SYS_mprotect, at, n, prot);
    enter(caller, &c);
    int status = -1;
    const bool opens = (prot & PROT_WRITE) != 0;
    const size_t more = opens ? bytes_in(start, end, false) : 0;
    if (take(&c, more)) {
        status = (int)syscall(SYS_mprotect, at, n, prot);
        const int error = errno;
        if (status != 0) give_back(more);
        else if ((more > 0 || !opens) && isolate(start, end))
            set_writable(start, end, opens, more > 0 ? stack_of(&c) : 0);
        errno = error;
    }
    leave();
    return status;
}

void *hkc_mapped_mremap(void *at, size_t n, size_t now, int flags, void *to, uintptr_t caller)
{
    call c;
    const uintptr_t start = (uintptr_t)at;
    if (passes_on(caller) || !t) return (void *)syscall(SYS_mremap, at, n, now, flags, to);
    enter(caller, &c);
    void *p = MAP_FAILED;
    const size_t old_size = whole_pages(n), size = whole_pages(now), i = place_of(start);
    const bool ours = i < count && t->at[i].start <= start, writable = ours && t->at[i].writable,
               shared = ours && t->at[i].shared;
    const size_t more = writable && size > old_size ? size - old_size : 0;
    if (more == 0 || take(&c, more)) {
        p = (void *)syscall(SYS_mremap, at, n, now, flags, to);
        const int error = errno;
        if (p == MAP_FAILED) {
            give_back(more);
        } else if (ours) {
            const uint32_t stack = more > 0 ? stack_of(&c) : t->at[i].stack;
            const size_t weight = take_out(start, start + old_size) + more;
            cut((uintptr_t)p, (uintptr_t)p + size);
            insert((uintptr_t)p, (uintptr_t)p + size, stack, writable, shared, weight < size ? weight : size);
            if (weight > size) give_back(weight - size);
        }
        errno = error;
    }
    leave();
    return p;
}

/* glibc's own. */
extern void *__sbrk(intptr_t more) __attribute__((weak));

void *hkc_mapped_sbrk(intptr_t more, uintptr_t caller)
{
    call c;
    void *const failed = (void *)-1;
    if (more == 0 || passes_on(caller)) return __sbrk(more);
    enter(caller, &c);
    const size_t size = more > 0 ? whole_pages((size_t)more) : 0;
    void *p = failed;
    if (!make_tables()) {
        p = __sbrk(more);
    } else if (take(&c, size)) {
        p = __sbrk(more);
        const uintptr_t start = whole_pages((uintptr_t)p), end = whole_pages((uintptr_t)p + (size_t)more);
        if (p == failed) {
            give_back(size);
        } else if (more > 0) {
            cut(start, end);
            if (end > start) insert(start, end, stack_of(&c), true, false, end - start);
            if (size > end - start) give_back(size - (end - start));
        } else {
            cut((uintptr_t)p - (size_t)-more, (uintptr_t)p);
        }
    }
    leave();
    return p;
}

size_t hkc_mapped_measure(pid_t pid)
{
    hkc_smaps maps;
    size_t bytes = 0;
    if (!t) return 0;
    if (pid == 0) pid = getpid();
    inside = true;
    /* Before the mappings are read: no window tells more than the report. Not in a copy: there the clock goes on, and
     * its pages are others. */
    if (pid == getpid() && lock_soon()) {
        turn();
        unlock();
    }
    const int fd = hkc_proc_open(pid, "pagemap");
    if (fd >= 0 && hkc_smaps_read(&maps, pid)) {
        if (lock_soon()) {
            sum_up(fd, &maps);
            if (touched_bytes < WORTH) touched_bytes = 0;
            bytes = touched_bytes;
            unlock();
        }
        hkc_smaps_close(&maps);
    }
    if (fd >= 0) close(fd);
    inside = false;
    return bytes;
}

/* What is shared has a part of its own in the list, whoever mapped it. */
void hkc_mapped_parts(hkc_parts *parts)
{
    if (!parts || !t || touched_bytes == 0 || !lock_soon()) return;
    for (size_t i = 0; i < LIBRARIES; i++)
        if (t->sums[i] > t->shared[i])
            hkc_parts_mapped(parts, t->names[i][0] ? t->names[i] : "others", t->sums[i] - t->shared[i]);
    for (size_t i = 0; i < count; i++)
        if (!t->at[i].shared) hkc_parts_past_malloc(parts, t->at[i].start, t->at[i].end);
    unlock();
}

hak_ctx *hkc_mapped_context(void)
{
    return touched_bytes > 0 ? ctx : NULL;
}

int hkc_mapped_json(hkc_json *w, const hkc_profile_writer *by)
{
    hak_stats stats = {.size = sizeof stats};
    hak_label_info labels[LIBRARIES + 1];
    size_t n = 0;
    if (!t || touched_bytes == 0 || !lock_soon()) return 0;
    inside = true;
    hak_ctx_stats(ctx, &stats);
    stats.live_bytes = stats.peak_bytes = stats.committed_bytes = touched_bytes;
    stats.live_blocks = count;
    stats.reserved_bytes = 0;
    for (size_t i = 0; i < count; i++)
        stats.reserved_bytes += t->at[i].end - t->at[i].start;
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (t->sums[i] == 0) continue;
        labels[n] = (hak_label_info){
            .name = t->names[i][0] ? t->names[i] : "others", .label = (hak_label)i, .live_bytes = t->sums[i]};
        for (size_t k = 0; k < count; k++)
            labels[n].live_blocks += library_of(t->labels[t->at[k].stack]) == i;
        n++;
    }
    hkc_json_object(w, NULL);
    hkc_json_text(w, "name", "mapped");
    hkc_report_json_stats(w, &stats);
    hkc_report_json_labels(w, labels, n);
    hkc_profile_writer touched = *by;
    touched.touched_bytes = touched_bytes;
    const int error = hkc_profile_json_by(w, ctx, &touched);
    hkc_json_end(w);
    unlock();
    inside = false;
    return error;
}
