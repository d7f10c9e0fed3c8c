/* Reports that were read from files, and what writes them in other forms. One thread at a time. Texts are
 * UTF-8 and belong to the report. */
#ifndef HKR_REPORT_H
#define HKR_REPORT_H

#include "names.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __MINGW_PRINTF_FORMAT /* MinGW's own printf, which knows C99's formats */
#define HKR_FORMAT __MINGW_PRINTF_FORMAT
#else
#define HKR_FORMAT printf
#endif

typedef enum hkr_value {
    HKR_ALLOC_BLOCKS,
    HKR_ALLOC_BYTES,
    HKR_LIVE_BLOCKS,
    HKR_LIVE_BYTES,
    HKR_PEAK_BLOCKS,
    HKR_PEAK_BYTES,
    HKR_VALUES
} hkr_value;

typedef struct hkr_frame {
    const char *function, *file, *module; /* "" = not known */
    int line;                             /* 0 = not known */
    const char *build_id;                 /* of the module; "" = not known */
    uint64_t address;                     /* in the module; 0 = not known */
    bool native;
    bool wrapper; /* hands on what others ask for: wrapper.c */
} hkr_frame;

typedef struct hkr_stack {
    double id;
    const char *label, *thread;
    const uint32_t *frames; /* of the context; the innermost first */
    size_t depth;
    double value[HKR_VALUES], alloc_error, live_error, peak_error; /* of bytes; 0 = exact */
    double pinned; /* free bytes that its live blocks keep from going back */
    double reused; /* bytes of its live blocks that another line may have taken since */
} hkr_stack;

typedef struct hkr_context {
    const char *name;                          /* unique in its report: "name", "name#2" */
    const json_t *stats;                       /* NULL = none */
    const json_t *linear;                      /* what a guest's memories are; NULL = none */
    const json_t *labels;                      /* an array; NULL = none */
    const json_t *holes;                       /* an array; NULL = none */
    const json_t *imports, *marks, *histories; /* arrays; NULL = none */
    const char *
        reused; /* whether objects from free lists have the line that takes them: "followed"; "" = not known */
    const json_t *profile, *verdicts;
    hkr_frame *frames;
    size_t frame_count;
    hkr_stack *stacks;
    size_t stack_count;
    json_t *places; /* in stacks, by id; NULL = no verdict or history asks for one */
} hkr_context;

typedef struct hkr_report {
    const char *path;
    char *text; /* of the file */
    size_t size;
    json_t *root;
    bool changed; /* the root, from what the text says: names and lines of machine code were found */
    hkr_context *contexts;
    size_t context_count;
    const json_t *process, *memory;
    hkr_names names;
    void **owned; /* what else has to be freed */
    size_t owned_count;
} hkr_report;

enum { HKR_ERROR = 512, HKR_DEPTH = 1024 };

/* path "-" = standard input. NULL = `error` says why, in one line; it has HKR_ERROR bytes. */
hkr_report *hkr_load(const char *path, char *error);
/* From a stream, of at most so many bytes; path is for messages, and stays. */
hkr_report *hkr_load_stream(FILE *in, size_t most, const char *path, char *error);
void hkr_free(hkr_report *report);

/* A number of an object, 0 where it has none; a text, "" where it has none. object NULL is fine. */
double hkr_number(const json_t *object, const char *key);
const char *hkr_text(const json_t *object, const char *key);
/* Returns the sum of a statistic over all contexts. */
double hkr_total(const hkr_report *report, const char *name);
/* Rows of `size` bytes, which a table finds by their keys. */
typedef struct hkr_rows {
    json_t *table;
    void *at;
    size_t count, room, size;
} hkr_rows;
/* Returns the row of a key, all 0 where it is new, valid until the next call; NULL = no memory. */
void *hkr_row(hkr_rows *rows, const char *key);
/* Writes the first words of the process's command with blanks between them, each cut to `each` bytes. */
void hkr_command(char *text, size_t size, const hkr_report *report, size_t words, size_t each);
/* Writes a number as the key of an object, and returns it. */
const char *hkr_key(char key[32], double number);

/* "parse (a.lua:12)", "malloc [libc.so.6]". Bytes that a terminal could take for commands become '?'. */
void hkr_frame_text(char *text, size_t size, const hkr_frame *frame);
void hkr_clean(char *text, size_t size, const char *from);
/* false. Writes one line without such bytes to `error`, which has HKR_ERROR bytes. */
bool hkr_fail(char *error, const char *format, ...) __attribute__((format(HKR_FORMAT, 2, 3)));
/* The first stack with that id; NULL = none, or the context has neither verdicts nor histories. */
const hkr_stack *hkr_stack_of(const hkr_context *context, double id);
/* The name, or "name#2" where it was taken before. names: an object, of those that are taken. To be freed;
 * NULL = no memory. */
char *hkr_unique(json_t *names, const char *name);
/* How many bytes of a character at this place a terminal could take for a command; 0 = it is no such one. */
size_t hkr_control(const char *at);
/* The frame for a line of a table: the innermost line of an interpreter, else the innermost function that does
 * not only hand on what others ask for; NULL = no frames. Its place in the stack, 0 = none. */
const hkr_frame *hkr_site(const hkr_context *context, const hkr_stack *stack);
size_t hkr_site_at(const hkr_context *context, const hkr_stack *stack);
/* Once, when the stacks are there. false = no memory. */
bool hkr_find_wrappers(hkr_context *context);
/* Sorts as qsort does, and keeps the order of rows that compare as equal: what qsort does with these differs between
 * C libraries, and the same reports would be printed in several ways. Without memory it sorts as qsort does. */
void hkr_sort(void *rows, size_t n, size_t size, int (*order)(const void *, const void *));
/* Returns the elements of an array, sorted; order compares two json_t *. To be freed; NULL = no memory. */
json_t **hkr_sorted(const json_t *array, int (*order)(const void *, const void *));
/* "1.50 MiB"; with a sign for differences. Returns text. */
const char *hkr_bytes(char text[32], double bytes, bool sign);
/* The stacks of all reports. */
size_t hkr_stacks(hkr_report *const *reports, size_t count);

typedef struct hkr_options {
    hkr_value by;      /* HKR_LIVE_BYTES, HKR_PEAK_BYTES or HKR_ALLOC_BYTES */
    size_t top;        /* rows of a table */
    bool windows;      /* of a live view: what was live when the windows began */
    bool open_metrics; /* of Prometheus' two text formats, OpenMetrics 1.0 */
} hkr_options;

/* The writers. false = `out` failed, or no memory. */
bool hkr_write_text(FILE *out, const hkr_report *report, const hkr_options *options);
bool hkr_write_diff(FILE *out, const hkr_report *before, const hkr_report *after, const hkr_options *options);
bool hkr_write_folded(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);
bool hkr_write_speedscope(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);
bool hkr_write_pprof(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);
bool hkr_write_prometheus(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);
#ifdef HKR_HTML
bool hkr_write_html(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);
#endif

#endif
