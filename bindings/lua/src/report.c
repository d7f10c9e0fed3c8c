/* The text report: which label holds the memory, and what the process has beside it. */
#include "hakmem/lua.h"
#include "snapshot.h"
#include "state.h"

#include <string.h>

#define BAR_WIDTH 36

static void label_rows(FILE *out, const hk_lua_snapshot *snap)
{
    const size_t total = snap->stats.live_bytes;
    const size_t largest = snap->count > 0 ? snap->labels[0].live_bytes : 0;
    char bar[BAR_WIDTH + 1];
    memset(bar, '#', BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    fprintf(out, "  %-22s %14s %11s %7s\n", "label", "live bytes", "blocks", "share");
    for (int i = 0; i < snap->count; i++) {
        const hak_label_info *l = &snap->labels[i];
        if (l->live_blocks == 0) continue;
        int width = (int)((double)l->live_bytes / (double)largest * BAR_WIDTH + 0.5);
        fprintf(out, "  %-22.22s %14zu %11zu %5.1f %%%s%.*s\n", l->name, l->live_bytes, l->live_blocks,
                100.0 * (double)l->live_bytes / (double)total, width > 0 ? "  " : "", width, bar);
    }
}

static void total_row(FILE *out, const char *name, size_t bytes, const char *what)
{
    fprintf(out, "  %-22s %14zu %11.2f MiB  %s\n", name, bytes, (double)bytes / (1 << 20), what);
}

static void limit_row(FILE *out, const char *name, size_t bytes)
{
    if (bytes != 0) total_row(out, name, bytes, "of committed bytes");
}

static void total_rows(FILE *out, const hk_lua_snapshot *snap)
{
    const hak_stats *s = &snap->stats;
    size_t rss = hk_lua_process_rss();
    size_t ours = s->committed_bytes - s->released_bytes + s->idle_bytes;
    total_row(out, "live", s->live_bytes, "blocks that Lua holds");
    total_row(out, "cached", s->cached_bytes, "free, kept for the next blocks");
    total_row(out, "metadata", s->metadata_bytes, "bitmaps, labels, tables of hakmem");
    total_row(out, "committed", s->committed_bytes, "the sum of these three");
    total_row(out, "released", s->released_bytes, "part of cached that is back at the system");
    total_row(out, "peak live", s->peak_bytes, "the highest so far");
    limit_row(out, "soft limit", s->soft_limit);
    limit_row(out, "hard limit", s->hard_limit);
    if (rss != 0) {
        total_row(out, "process resident", rss, "of the whole process");
        total_row(out, "  not ours", rss > ours ? rss - ours : 0, "program, libraries, machine code, malloc");
    }
}

int hak_lua_report(lua_State *L, FILE *out)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (ctx == NULL) return -1;
    const hk_lua_state *st = hk_lua_state_of(L);
    hk_lua_snapshot snap;
    hk_lua_snapshot_take(&snap, ctx);
    fprintf(out, "hakmem %s: %s%s%zu bytes in %zu blocks%s\n", hak_version(), hak_ctx_name(ctx),
            hak_ctx_name(ctx)[0] != '\0' ? ": " : "", snap.stats.live_bytes, snap.stats.live_blocks,
            st != NULL && st->labels != NULL ? "" : " (labels are off)");
    label_rows(out, &snap);
    fputc('\n', out);
    total_rows(out, &snap);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
