/* What memory is for, by the place that asked: a host whose allocations pass through one function. A place is the
 * address that this function returns to; addr2line -e profile ADDRESS gives its line.
 *
 *     cc -g profile.c $(pkg-config --cflags --libs hakmem) -o profile
 */
#include <hakmem/hakmem.h>
#include <hakmem/profile.h>

#include <stdio.h>
#include <string.h>

static hak_ctx *ctx;
static hak_label labels[2];

__attribute__((noinline)) static char *take(size_t n, hak_label label)
{
    return hak_alloc_cs(ctx, n, label, HAK_CALLSITE());
}

typedef struct total {
    double live, allocated;
    int places;
} total;

static bool print_place(void *user, const hak_profile_stack *s)
{
    total *t = user;
    t->live += s->live_bytes;
    t->allocated += s->alloc_bytes;
    t->places++;
    printf("%#14zx %-8s %8.0f KiB live +- %4.0f, %8.0f KiB allocated, %5.0f bytes a block\n", (size_t)s->site,
           hak_label_name(ctx, s->label), s->live_bytes / 1024, s->live_bytes_error / 1024, s->alloc_bytes / 1024,
           s->mean_bytes);
    return true;
}

int main(void)
{
    enum { ROUNDS = 20000 };
    ctx = hak_ctx_new(NULL, NULL);
    if (!ctx) return 1;
    labels[0] = hak_label_define(ctx, "cache");
    labels[1] = hak_label_define(ctx, "requests");
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 64 << 10; /* a sample each 64 KiB */
    if (hak_profile_start(ctx, &options) != 0) return 1;

    for (int i = 0; i < ROUNDS; i++) {
        char *request = take(1000, labels[1]);
        char *kept = take(100, labels[0]);
        if (!request || !kept) return 1;
        memset(request, 0, 1000);
        hak_free(ctx, request);
    }

    total t = {0, 0, 0};
    hak_profile_visit(ctx, print_place, &t);
    printf("%.0f KiB live of %zu KiB\n", t.live / 1024, hak_ctx_live_bytes(ctx) / 1024);
    hak_ctx_destroy(ctx);
    return t.places == 2 && t.live > 1e6 && t.allocated > 15e6 ? 0 : 1;
}
