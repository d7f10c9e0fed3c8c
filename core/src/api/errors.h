/* Reports misuse and counts failures. */
#ifndef HK_ERRORS_H
#define HK_ERRORS_H

#include "heap/ctx.h"

/* Reports misuse to the host: the only caller of its callback. */
HK_COLD void hk_error(const hak_ctx *ctx, hak_error error, const void *p, const char *what);
/* Reports what is wrong with p, which is not the start of a live block of ctx. */
HK_COLD void hk_misuse(const hak_ctx *ctx, const void *p);
/* The judge of all contexts: reports what the layers below found. */
HK_COLD void hk_report_wrong(const hak_ctx *ctx, hk_wrong what, const void *p);

/* Counts a failed allocation; returns NULL. */
HK_COLD void *hk_fail(hak_ctx *ctx);

#endif
