/* A limit whose last part is kept back for the error itself. */
#include <hakmem/reserve.h>

static void crossed(hak_ctx *ctx, void *user, size_t committed, size_t limit);

static void set(hak_reserve *r, bool open)
{
    r->open = open;
    hak_limit(r->ctx, r->soft, open ? r->hard : r->hard - r->bytes, crossed, r);
}

/* The context had fallen below the soft limit. */
static void crossed(hak_ctx *ctx, void *user, size_t committed, size_t limit)
{
    hak_reserve *r = user;
    set(r, false);
    if (r->fn) r->fn(ctx, r->user, committed, limit);
}

int hak_reserve_limit(hak_reserve *r, hak_ctx *ctx, size_t soft, size_t hard, size_t bytes,
                      hak_pressure_fn *fn, void *user)
{
    const size_t most = (size_t)64 << 10;
    if (bytes == 0) bytes = hard / 8 < most ? hard / 8 : most;
    if (soft == 0) soft = hard / 4 * 3;
    if (hard != 0 && (bytes >= hard || soft > hard - bytes)) return -1; /* a rest of 0 would be no limit */
    r->ctx = ctx;
    r->soft = soft;
    r->hard = hard;
    r->bytes = hard ? bytes : 0;
    r->fn = fn;
    r->user = user;
    r->wanted = 0;
    set(r, false);
    return 0;
}

void hak_reserve_open(hak_reserve *r)
{
    if (!r->ctx || r->hard == 0) return;
    r->opened += !r->open;
    set(r, true);
}

bool hak_reserve_refused(hak_reserve *r, size_t n)
{
    if (r->tries > 1) {
        if (r->wanted == 0) {
            r->wanted = n;
            r->refused = 0;
        }
        if (r->wanted != n || ++r->refused < r->tries) return false;
        r->wanted = 0;
    }
    hak_reserve_open(r);
    return true;
}

static bool is_room(const hak_reserve *r)
{
    hak_stats stats = {.size = sizeof stats};
    return hak_ctx_stats(r->ctx, &stats) == 0 && stats.committed_bytes <= r->hard - r->bytes;
}

bool hak_reserve_close(hak_reserve *r)
{
    if (!r->open) return true;
    if (!is_room(r)) {
        hak_ctx_trim(r->ctx);
        if (!is_room(r)) return false;
    }
    set(r, false);
    return true;
}
