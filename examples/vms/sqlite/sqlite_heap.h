/* SQLite on hakmem: a heap for each connection. */
#ifndef SQLITE_HEAP_H
#define SQLITE_HEAP_H

#include <hakmem/hakmem.h>
#include <sqlite3.h>

/* Before any other call of SQLite. space: where all heaps lie; it outlives SQLite. labels: by call site. An
 * error of SQLite's, or SQLITE_OK. */
int sqlite_heap_start(hak_space *space, bool labels);
/* After the last connection was closed or dropped; ends with SQLite's own allocator. */
void sqlite_heap_end(void);

/* For a connection; hak_limit sets its limit. NULL = no memory. */
hak_ctx *sqlite_heap_new(void);
/* What the calling thread does with SQLite from now on is in this heap, which it alone uses meanwhile. NULL =
 * in that of the process. Returns what was before. */
hak_ctx *sqlite_heap_use(hak_ctx *heap);
hak_ctx *sqlite_heap_current(void);
/* The connection was closed; what SQLite still needs of the heap, and texts that the host did not free yet,
 * stay until they are freed. */
void sqlite_heap_retire(hak_ctx *heap);
/* Of a connection that was not closed: all of its memory at once. Only for a database in memory, with
 * `PRAGMA temp_store = memory`: nobody closes files or ends what other connections wait for. */
void sqlite_heap_drop(hak_ctx *heap);
/* That of the process: files, which connections share, and what SQLite has of its own. */
hak_ctx *sqlite_heap_process(void);

#endif
