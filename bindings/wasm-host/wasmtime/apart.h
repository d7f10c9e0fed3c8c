/* A module that another program compiles, and what the two say to each other: in a file in memory, the program's
 * standard input, which has the request at first, and the answer in its place afterwards. */
#ifndef HKW_APART_H
#define HKW_APART_H

#include "types.h"

#include <hakmem/wasm_wasmtime_apart.h>

/* ---- The file ------------------------------------------------------------------------------------ */

enum { HKW_MARK_BYTES = 8 };   /* with the zero */
#define HKW_ASKED "hakask1"    /* by the host */
#define HKW_BEGUN "hakbegn"    /* in its place when the program has read it */
#define HKW_TIMED "haktime"    /* in its place when the time of a processor is over */
#define HKW_ANSWERED "hakcod1" /* written last, so that half an answer is none */

/* Before the bytes of the copy, then those of the module itself. */
typedef struct hkw_request {
    char mark[HKW_MARK_BYTES];
    uint64_t copy_size; /* 0 = there is none */
    uint64_t size;
    uint64_t slot, guard; /* of linear memories */
    uint64_t milliseconds, cpu_milliseconds, bytes;
} hkw_request;

typedef enum hkw_answer_kind {
    HKW_CODE_OF_COPY,
    HKW_CODE_OF_MODULE, /* there is no copy, or wasmtime refuses the copy alone */
    HKW_TEXT,           /* why wasmtime refuses the module */
    HKW_NO_MEMORY,
    HKW_ANSWER_KINDS
} hkw_answer_kind;

/* Before the code or the text. */
typedef struct hkw_answer {
    char mark[HKW_MARK_BYTES];
    uint64_t kind;
    uint64_t size;
    uint64_t peak; /* address space beyond what there was at first; 0 = unknown */
} hkw_answer;

/* ---- apart.c ------------------------------------------------------------------------------------- */

typedef struct hkw_apart {
    hak_wasmtime_apart_options options; /* with numbers in place of each 0 */
    hak_wasmtime_apart_info info;
} hkw_apart;

/* Machine code in the answer's file. */
typedef struct hkw_code {
    hkw_answer_kind kind; /* of copy or of module */
    const uint8_t *bytes;
    size_t size;
    void *view; /* mmap */
    size_t view_size;
} hkw_code;

/* Returns why these options are none; NULL = *apart is ready. */
const char *hkw_apart_begin(hkw_apart *apart, const hak_wasmtime_apart_options *options);
/* Has the program compile the copy, if there is one, or, where wasmtime refuses the copy alone, the module.
 * Returns NULL and *code, which is to be ended, or an error and its kind in apart->info. */
wasmtime_error_t *hkw_apart_compile(hkw_apart *apart, const hak_wasm_host *host, const hkw_module *copy,
                                    const uint8_t *bytes, size_t size, hkw_code *code);
/* Returns the error to tell where this engine does not take the code, or has no memory for it; deletes
 * wasmtime's own. */
wasmtime_error_t *hkw_apart_not_taken(hkw_apart *apart, wasmtime_error_t *why);
void hkw_code_end(hkw_code *code);
/* Whether the system had no memory for wasmtime. */
bool hkw_is_no_memory(const wasmtime_error_t *error);

#endif
