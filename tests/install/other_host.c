/* A host on another processor than x86-64: labels by call site, and stacks of machine code with their names. The report
 * goes to standard output. */
#include <hakmem/report.h>

#include <stdio.h>
#include <string.h>

static hak_ctx *ctx;
static hak_sites *sites;

#define APART __attribute__((noinline))
/* What follows a call keeps the compiler from making the call a jump. */
#define STAY() __asm__ volatile("" ::: "memory")

APART void *host_take(size_t n)
{
    return hak_alloc_cs(ctx, n, hak_sites_label(sites, HAK_SITES_SP()), HAK_CALLSITE());
}

APART void *helper_take(size_t n)
{
    volatile char room[200]; /* a frame of another size */
    room[n % sizeof room] = 1;
    void *p = host_take(n);
    STAY();
    return p;
}

APART void *page_make(void)
{
    void *p = helper_take(4096);
    STAY();
    return p;
}

APART void *row_make(void)
{
    void *p = host_take(100);
    STAY();
    return p;
}

static size_t bytes_of(const char *name)
{
    hak_label_info infos[HAK_LABELS_MAX + 1];
    const int n = hak_labels_stats(ctx, infos, HAK_LABELS_MAX + 1);
    for (int i = 0; i < n; i++)
        if (infos[i].label && strcmp(infos[i].name, name) == 0) return infos[i].live_bytes;
    return 0;
}

int main(void)
{
    static const hak_site_rule rules[] = {{"page_", "page"}, {"row_", "row"}, {"helper_", NULL}};
    hak_sites_options options = HAK_SITES_OPTIONS_INIT;
    options.rules = rules;
    options.rule_count = 3;
    sites = hak_sites_new(&options);
    if (!sites) return 2;
    hak_options heap = HAK_OPTIONS_INIT;
    heap.labels = hak_sites_labels(sites, &heap.label_count);
    ctx = hak_ctx_new(NULL, &heap);
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.mode = HAK_PROFILE_EXACT;
    profile.frames = hak_native_frames;
    if (!ctx || hak_profile_start(ctx, &profile) != 0) return 3;
    for (int i = 0; i < 100; i++)
        if (!page_make() || !row_make()) return 4;
    if (bytes_of("page") < 409600 || bytes_of("row") < 10000 || bytes_of("row") > 20000) {
        fprintf(stderr, "page %zu, row %zu\n", bytes_of("page"), bytes_of("row"));
        return 5;
    }
    if (hak_report_stream(stdout, &ctx, 1, NULL) != 0) return 6;
    hak_ctx_destroy(ctx);
    hak_sites_delete(sites);
    return 0;
}
