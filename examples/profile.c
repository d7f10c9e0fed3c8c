/* What memory is for, by the place that asked: a host whose allocations pass through one function. The report has
 * the function and the line of each place.
 *
 *     cc -g profile.c $(pkg-config --cflags --libs hakmem-report) -o profile
 *     ./profile profile.json && hakmem report profile.json       # or hakmem html profile.json -o page.html
 */
#include <hakmem/profile.h>
#include <hakmem/report.h>

#include <stdio.h>
#include <string.h>

static hak_ctx *ctx;
static hak_label labels[2];

__attribute__((noinline)) static char *take(size_t n, hak_label label)
{
    return hak_alloc_cs(ctx, n, label, HAK_CALLSITE());
}

__attribute__((noinline)) static int serve(void)
{
    char *request = take(1000, labels[1]);
    char *kept = take(100, labels[0]);
    if (!request || !kept) return 1;
    memset(request, 0, 1000);
    hak_free(ctx, request);
    return 0;
}

int main(int argc, char **argv)
{
    ctx = hak_ctx_new(NULL, NULL);
    if (!ctx) return 1;
    labels[0] = hak_label_define(ctx, "cache");
    labels[1] = hak_label_define(ctx, "requests");
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mean = 64 << 10; /* a sample each 64 KiB */
    options.frames = hak_native_frames;
    if (hak_profile_start(ctx, &options) != 0) return 1;

    for (int i = 0; i < 20000; i++)
        if (serve() != 0) return 1;

    const char *path = argc > 1 ? argv[1] : "/dev/stdout";
    int error = hak_report_path(path, &ctx, 1, NULL);
    if (error) fprintf(stderr, "%s: %s\n", path, strerror(error));
    hak_ctx_destroy(ctx);
    return error != 0;
}
