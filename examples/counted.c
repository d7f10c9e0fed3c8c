/* A VM that knows which line of its program allocates, exactly and at some 15 instructions for each object: it has the
 * record of a line beside the line, and each object says which record it is counted in.
 *
 *     cc counted.c $(pkg-config --cflags --libs hakmem-report) -o counted
 *     ./counted counted.json && hakmem report counted.json
 */
#include <hakmem/hakmem.h>
#include <hakmem/profile.h>
#include <hakmem/report.h>

#include <stdio.h>
#include <string.h>

enum { LINES = 4 };

typedef struct object {
    hak_profile_counts *counts; /* of the line that made it */
    size_t size;
    struct object *next;
} object;

typedef struct vm {
    hak_ctx *ctx;
    hak_profile_tally *tally;
    hak_frames *frames;               /* functions and lines of the program, for the report */
    hak_profile_counts *lines[LINES]; /* NULL = has not allocated yet */
} vm;

static object *new_object(vm *m, unsigned line, size_t size)
{
    hak_profile_counts **counts = &m->lines[line];
    if (!*counts) {
        const uintptr_t frame = hak_frames_add(m->frames, "handle", "server.vm", (int)line);
        *counts = hak_profile_counts_of(m->ctx, &frame, 1, 0);
    }
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

int main(int argc, char **argv)
{
    enum { WINDOWS = 8, REQUESTS = 1000 };
    vm m = {.ctx = hak_ctx_new(NULL, NULL), .frames = hak_frames_new(0)};
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_COUNTED;
    if (!m.ctx || !m.frames || hak_profile_start(m.ctx, &options) != 0) return 1;
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

    hak_report_options report = HAK_REPORT_OPTIONS_INIT;
    report.frames = m.frames;
    const char *path = argc > 1 ? argv[1] : "/dev/stdout";
    int error = hak_report_path(path, &m.ctx, 1, &report);
    if (error) fprintf(stderr, "%s: %s\n", path, strerror(error));
    hak_ctx_destroy(m.ctx);
    hak_frames_delete(m.frames);
    return error != 0;
}
