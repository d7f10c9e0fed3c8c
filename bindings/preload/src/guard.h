/* guard=N of the settings: blocks before guard pages, and what a fault at one tells. */
#ifndef HKS_PRELOAD_GUARD_H
#define HKS_PRELOAD_GUARD_H

#include <hakmem/tuning.h>

/* If the settings ask for it, options say so, with numbers in *tuning. */
void hks_guard_options(hak_options *options, hak_tuning *tuning);
/* Of the context that was made with them. */
void hks_guard_begin(hak_ctx *ctx);
/* From now on a fault is told, unless the program has a handler of its own. */
void hks_guard_listen(void);

#endif
