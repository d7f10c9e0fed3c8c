/* Where a tool keeps what it can make again. */
#ifndef HKC_CACHE_H
#define HKC_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* $XDG_CACHE_HOME/hakmem, or $HOME/.cache/hakmem; on macOS $HOME/Library/Caches/hakmem, on Windows
 * %LOCALAPPDATA%\hakmem. The folder need not be there. false = there is none: neither is set to an absolute path,
 * it is too long, or the program has more rights than its user (setuid).
 * [any thread] */
bool hkc_cache_folder(char *out, size_t size);

#endif
