/* Reports of misuse, names of errors, the version, failures. */
#include "api/errors.h"

#include "heap/asked.h"
#include "heap/big.h"
#include "heap/block.h"
#include "heap/guard.h"
#include "heap/packed.h"
#include "heap/slab.h"

/* ---- Reports ------------------------------------------------------------------------------------- */

void hk_error(const hak_ctx *ctx, hak_error error, const void *p, const char *what)
{
    if (ctx->host.on_error) ctx->host.on_error(ctx->host.error_user, error, p, what);
    if (ctx->debug & HAK_DEBUG_ABORT) hk_os_abort();
}

/* Whether the memory at p is nobody's and was a block of ctx, which knows this with HAK_DEBUG_CHECK. */
static bool was_block(const hak_ctx *ctx, const void *p)
{
    const hk_extent *e = hk_extent_of(ctx->space, p);
    return e && hk_extent_entry(e, p) == 0 && hk_asked(ctx, p) != HAK_NONE;
}

/* The same of a drawn block. */
static bool was_drawn(const hak_ctx *ctx, const void *p)
{
    const hk_guard_slot *slot = hk_guard_slot_at(ctx->space, p);
    const hak_ctx *owner = slot ? atomic_load_explicit(&slot->ctx, memory_order_relaxed) : NULL;
    return owner && hk_whole(owner) == hk_whole(ctx) && slot->p == p && !hk_guard_in(ctx->space, p);
}

void hk_misuse(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    hk_slab *s;
    uint32_t kind = hk_find(&ctx, p, &e);
    const hk_big *b = hk_big_find(ctx, p);
    /* A run that the heap takes for live waits in quarantine. */
    bool freed = kind < HK_SMALL_CLASSES  ? hk_slab_index(ctx, e, kind, p, &s) >= 0
                 : kind == HK_KIND_PACKED ? hk_packed_start(ctx, p)
                 : kind < HK_BINS         ? hk_block_size(ctx, p) || was_block(ctx, p)
                                          : (b && b->cached) || was_block(ctx, p) || was_drawn(ctx, p);
    if (freed) hk_error(ctx, HAK_E_DOUBLE_FREE, p, "the block is free already");
    else if (hk_owns(ctx, p)) hk_error(ctx, HAK_E_POINTER, p, "not the start of a block");
    else hk_error(ctx, HAK_E_FOREIGN, p, "not a block of this context");
}

void hk_report_wrong(const hak_ctx *ctx, hk_wrong what, const void *p)
{
    /* Not pointers: they would be writable data in position-independent code. */
    static const struct {
        hak_error error;
        char what[68];
    } wrong[] = {
        [HK_WRONG_SIZE] = {HAK_E_SIZE, "the size told is not what was last asked for"},
        [HK_WRONG_BEFORE] = {HAK_E_BOUNDS, "guard: written to before the block"},
        [HK_WRONG_BEHIND] = {HAK_E_BOUNDS, "guard: written to behind the end of the block"},
        [HK_WRONG_CANARY] = {HAK_E_BOUNDS, "canary: written to behind the bytes that were asked for"},
        [HK_WRONG_LINK] = {HAK_E_USE_AFTER_FREE,
                           "allocate: a free block was written to; its link leads here"},
    };
    if (what == HK_WRONG_BLOCK) hk_misuse(ctx, p);
    else hk_error(ctx, wrong[what].error, p, wrong[what].what);
}

/* ---- Names, failures ----------------------------------------------------------------------------- */

const char *hak_error_name(hak_error error)
{
    static const char names[][24] = {
        [HAK_OK] = "HAK_OK",
        [HAK_E_FOREIGN] = "HAK_E_FOREIGN",
        [HAK_E_DOUBLE_FREE] = "HAK_E_DOUBLE_FREE",
        [HAK_E_POINTER] = "HAK_E_POINTER",
        [HAK_E_SIZE] = "HAK_E_SIZE",
        [HAK_E_ALIGNMENT] = "HAK_E_ALIGNMENT",
        [HAK_E_OVERFLOW] = "HAK_E_OVERFLOW",
        [HAK_E_LABEL] = "HAK_E_LABEL",
        [HAK_E_USE_AFTER_FREE] = "HAK_E_USE_AFTER_FREE",
        [HAK_E_CORRUPT] = "HAK_E_CORRUPT",
        [HAK_E_BOUNDS] = "HAK_E_BOUNDS",
    };
    bool known = (unsigned)error < sizeof names / sizeof *names && names[error][0];
    return known ? names[error] : "unknown error";
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define VERSION TEXT(HAK_VERSION_MAJOR) "." TEXT(HAK_VERSION_MINOR) "." TEXT(HAK_VERSION_PATCH)

const char *hak_header_error(int layout)
{
    if (layout == HAK_LAYOUT) return NULL;
    return "the program was compiled with the header of another hakmem than this library, which is " VERSION;
}

const char *hak_version(void)
{
    return VERSION;
}

void *hk_fail(hak_ctx *ctx)
{
    atomic_fetch_add_explicit(&ctx->account.failures, 1, memory_order_relaxed);
    return NULL;
}
