/* mistakes MODE KIND: makes one mistake with the memory of an allocator, then goes on as a program would.
 * MODE: "malloc" (whatever malloc is preloaded), or a sum of HAK_DEBUG_* for a context of hakmem. It says how
 * far it came on standard output, so that who looks on sees when the mistake was noticed: "before", "made",
 * "freed", "end"; of reports to on_error "report". KIND "work N": N operations without a mistake, for the
 * cost. */
#include <hakmem/hakmem.h>
#include <hakmem/tuning.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hak_ctx *ctx;

static void *take(size_t n)
{
    void *p = ctx ? hak_alloc(ctx, n) : malloc(n);
    if (!p) _exit(9);
    return p;
}

static void drop(void *p)
{
    if (ctx) hak_free(ctx, p);
    else free(p);
}

static void say(const char *what)
{
    if (write(1, what, strlen(what)) < 0 || write(1, "\n", 1) < 0) _exit(8);
}

static void on_error(void *user, hak_error error, const void *p, const char *what)
{
    (void)user, (void)p, (void)what;
    say("report");
    say(hak_error_name(error));
    _exit(3);
}

/* The compiler knows malloc and free, and would leave such accesses out. */
static void *volatile hidden;
static char *again(void *p)
{
    hidden = p;
    return hidden;
}

static unsigned long long state = 88172645463325252;
static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

enum { SLOTS = 10000 };
static void *slots[SLOTS];

static void work(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = below(SLOTS);
        drop(slots[k]);
        slots[k] = take(16 + below(1009));
        memset(slots[k], (int)k, 16);
    }
}

static void others(size_t size, int n)
{
    void *p[64];
    for (int i = 0; i < n; i++)
        p[i] = take(size);
    while (n)
        drop(p[--n]);
}

/* Whether most blocks lie as far behind the one before as the one before behind its own. */
static bool foretold(void)
{
    enum { BLOCKS = 256 };
    ptrdiff_t step[BLOCKS];
    unsigned same = 0;
    char *last = take(48);
    for (int i = 0; i < BLOCKS; i++) {
        char *p = take(48);
        step[i] = p - last;
        last = p;
        same += i && step[i] == step[i - 1];
    }
    return same > BLOCKS / 2;
}

/* Blocks of many sizes, each with what lies around it overwritten, then their own contents. */
static void overrun(void)
{
    enum { BLOCKS = 400 };
    char *p[BLOCKS];
    size_t n[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        p[i] = again(take(n[i] = 16 + below(3000)));
    for (int i = BLOCKS / 8; i < BLOCKS - BLOCKS / 8; i++) {
        memset(p[i] - 64, 1, 64);
        memset(p[i] + n[i], 1, 64);
    }
    say("made");
    for (int i = 0; i < BLOCKS; i++)
        drop(p[i]);
}

static int mistake(const char *kind)
{
    char *q, *neighbour = take(40), *p = again(take(40)), *next = take(40), *big = again(take(100000));
    memset(p, 's', 40);
    memset(big, 's', 100000);
    say("before");
    if (!strcmp(kind, "write 1 past the end")) p[40] = 1, say("made"), drop(p);
    else if (!strcmp(kind, "write 64 past the end")) memset(p + 40, 1, 64), say("made"), drop(p);
    else if (!strcmp(kind, "write 16 before")) memset(p - 16, 1, 16), say("made"), drop(p);
    else if (!strcmp(kind, "write 64 before")) memset(p - 64, 1, 64), say("made"), drop(p);
    else if (!strcmp(kind, "write 64 around 300 blocks")) overrun();
    else if (!strcmp(kind, "write a page past a large one"))
        memset(big + 100000, 1, 12288), say("made"), drop(big);
    else if (!strcmp(kind, "read 64 past the end")) hidden = (void *)(size_t)p[100], say("made"), drop(p);
    else if (!strcmp(kind, "write after the free")) drop(p), again(p)[8] = 1, say("made");
    else if (!strcmp(kind, "read after the free")) {
        drop(p);
        say(again(p)[20] == 's' ? "old contents" : "other contents");
        say("made");
    } else if (!strcmp(kind, "read of a large one after the free")) {
        drop(big);
        say(again(big)[50000] == 's' ? "old contents" : "other contents");
        say("made");
    } else if (!strcmp(kind, "second free at once")) drop(p), drop(again(p)), say("made");
    else if (!strcmp(kind, "second free after 50 others"))
        drop(p), others(40, 50), drop(again(p)), say("made");
    else if (!strcmp(kind, "second free of a block in use again")) {
        drop(p);
        for (int i = 0; i < 200 && (q = take(40)) != p; i++) {
        }
        if (q != again(p)) say("not again");
        drop(again(p)), say("made");
    } else if (!strcmp(kind, "second free of a large one")) drop(big), drop(again(big)), say("made");
    else if (!strcmp(kind, "free of a pointer into a block")) drop(again(p) + 16), say("made");
    else if (!strcmp(kind, "free of a pointer to the stack")) {
        char on_stack[64] __attribute__((aligned(16))) = {0};
        drop(again(on_stack)), say("made");
    } else if (!strcmp(kind, "contents of a freed block in a new one")) {
        drop(p);
        for (int i = 0; i < 200; i++) {
            char *fresh = take(40);
            if (fresh[20] == 's') return say("old contents"), 0;
        }
        return say("other contents"), 0;
    } else if (!strcmp(kind, "a freed block is the next one")) {
        drop(p);
        return say(take(40) == again(p) ? "yes" : "no"), 0;
    } else if (!strcmp(kind, "the next address can be told")) {
        return say(foretold() ? "yes" : "no"), 0;
    } else return 2;
    say("freed");
    for (int i = 0; i < 2000; i++)
        again(take(40)); /* the freed block comes out again, wherever that is allowed */
    for (int i = 0; i < SLOTS; i++)
        slots[i] = take(16 + below(1009));
    work(200000);
    drop(neighbour);
    drop(next);
    for (int i = 0; i < SLOTS; i++)
        drop(slots[i]);
    if (ctx) {
        hak_ctx_flush(ctx);
        if (!hak_ctx_check(ctx, on_error, NULL)) return 3;
    }
    say("end");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    hak_tuning tuning = HAK_TUNING_INIT;
    hak_options options = HAK_OPTIONS_INIT;
    tuning.guard_every = 1;
    options.on_error = on_error;
    options.workload = HAK_WORKLOAD_MALLOC;
    if (strcmp(argv[1], "malloc")) {
        options.debug = (unsigned)atoi(argv[1]);
        if (!strcmp(argv[2], "work")) tuning.guard_every = 5000;
        options.tuning = &tuning;
        ctx = hak_ctx_new(NULL, &options);
        if (!ctx) return 9;
    }
    if (strcmp(argv[2], "work")) return mistake(argv[2]);
    for (int i = 0; i < SLOTS; i++)
        slots[i] = take(16 + below(1009));
    work((size_t)atol(argv[3]));
    char line[128];
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "Anonymous:", 10)) fputs(line, stdout);
    return 0;
}
