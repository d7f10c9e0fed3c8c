/* A VM that knows which line of its program allocates, exactly and at some 15 instructions for each object: it has the
 * record of a line beside the line, and each object says which record it is counted in.
 *
 *     cc counted.c $(pkg-config --cflags --libs hakmem) -o counted
 */
#include <hakmem/hakmem.h>
#include <hakmem/profile.h>

#include <stdio.h>

enum { LINES = 4 };

typedef struct object {
    hak_profile_counts *counts; /* of the line that made it */
    size_t size;
    struct object *next;
} object;

typedef struct vm {
    hak_ctx *ctx;
    hak_profile_tally *tally;
    hak_profile_counts *lines[LINES]; /* NULL = has not allocated yet */
} vm;

static object *new_object(vm *m, unsigned line, size_t size)
{
    const uintptr_t frame = line; /* hakmem does not interpret frames */
    hak_profile_counts **counts = &m->lines[line];
    if (!*counts) *counts = hak_profile_counts_of(m->ctx, &frame, 1, 0);
    object *o = *counts ? hak_alloc(m->ctx, size) : NULL;
    if (!o) return NULL;
    *o = (object){*counts, size, NULL};
    hak_profile_count_alloc(m->tally, *counts, size);
    return o;
}

static void free_object(vm *m, object *o)
{
    hak_profile_count_free(m->tally, o->counts, o->size);
    hak_free_sized(m->ctx, o, o->size);
}

static bool print_line(void *user, const hak_profile_stack *s)
{
    *(double *)user += s->live_bytes;
    printf("line %zu: %6.0f objects live, %8.0f bytes; %7.0f allocated; %8.0f bytes at the peak\n",
           (size_t)s->frames[0], s->live_blocks, s->live_bytes, s->alloc_blocks, s->peak_bytes);
    return true;
}

static bool print_growth(void *user, const hak_profile_growth *g)
{
    *(unsigned *)user += g->leak;
    printf("%s: %s\n", g->leak ? "leak" : "growth", g->evidence);
    return true;
}

int main(void)
{
    enum { WINDOWS = 8, REQUESTS = 1000 };
    vm m = {.ctx = hak_ctx_new(NULL, NULL)};
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_COUNTED;
    if (!m.ctx || hak_profile_start(m.ctx, &options) != 0) return 1;
    m.tally = hak_profile_tally_of(m.ctx);

    object *kept = NULL;
    for (int w = 0; w < WINDOWS; w++) {
        hak_profile_mark(m.ctx, "a thousand requests");
        for (int i = 0; i < REQUESTS; i++) {
            object *request = new_object(&m, 1, 200), *answer = new_object(&m, 2, 1000);
            object *session = new_object(&m, 3, 64); /* which nobody frees */
            if (!request || !answer || !session) return 1;
            session->next = kept;
            kept = session;
            free_object(&m, answer);
            free_object(&m, request);
        }
    }

    double live = 0;
    unsigned leaks = 0;
    hak_profile_visit(m.ctx, print_line, &live);
    hak_profile_grown(m.ctx, print_growth, &leaks);
    hak_ctx_destroy(m.ctx);
    return live == WINDOWS * REQUESTS * 64 && leaks == 1 ? 0 : 1;
}
