/* The text report: which label holds the memory, and what the process has beside it. */
#include "common/report.h"
#include "hakmem/lua.h"
#include "state.h"

static void put(void *out, const char *text, size_t n)
{
    fwrite(text, 1, n, out);
}

int hak_lua_report(lua_State *L, FILE *out)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx) return -1;
    const hkl_state *st = hkl_state_of(L);
    hak_label_info labels[HAK_LABELS_MAX + 1];
    hkc_parts *parts = hkc_parts_of(0, &ctx, 1);
    hkc_report report = {
        .name = hak_ctx_name(ctx), .note = st && st->labelled ? "" : "labels are off", .parts = parts};
    hkc_report_take(&report, ctx, labels);
    hkc_report_put(&report, put, out);
    hkc_parts_close(parts);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
