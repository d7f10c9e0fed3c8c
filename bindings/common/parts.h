/* Where the resident memory of a process is: parts that sum up to it, each with what can be done about it.
 * Every report and view shows this list; nobody else takes the process apart.
 *
 *     hkc_parts *parts = hkc_parts_begin(pid); // the mappings of this moment
 *     hkc_parts_context(parts, ctx);           // for each context
 *     hkc_parts_end(parts);
 *     ...
 *     hkc_parts_close(parts);
 *
 * All of it takes pages of its own, nothing from malloc, no lock but those of the contexts, and little stack,
 * and it is for reports, never for a path that allocates. NULL is fine everywhere: the system does not tell,
 * or there is no memory. */
#ifndef HKC_PARTS_H
#define HKC_PARTS_H

#include "common/json.h"
#include "common/smaps.h"

#include <hakmem/hakmem.h>

enum {
    HKC_PARTS = 32,
    HKC_PART_NAME = 72,
    HKC_PART_HINT = 112,
    HKC_PART_LABELS = 64,
    HKC_PART_SPACES = 64,
    HKC_PART_CLASSES = 128,
    HKC_PART_MAPPERS = 16
};

typedef struct hkc_part {
    const char *kind; /* a word for scripts, see docs/internals/report-format.md */
    char name[HKC_PART_NAME];
    char hint[HKC_PART_HINT];
    size_t bytes;
} hkc_part;

typedef struct hkc_parts_label {
    char name[64];
    size_t bytes;
} hkc_parts_label;

typedef struct hkc_parts {
    size_t count;
    hkc_part part[HKC_PARTS];
    size_t sum;      /* bytes of all parts: the resident memory, as the mappings tell */
    size_t resident; /* the same, as the kernel counted it at that moment */
    /* Until the end. */
    hkc_smaps maps;
    int pagemap; /* of the process; -1 = it cannot be read */
    size_t ours, live, between, metadata;
    size_t unused; /* free memory of the contexts, and what their spaces retain */
    size_t guests; /* in mappings of a host's guests */
    hkc_parts_label labels[HKC_PART_LABELS];
    size_t label_count, labelled;
    hkc_parts_label mappers[HKC_PART_MAPPERS]; /* libraries that map memory past malloc */
    size_t mapper_count;
    const void *spaces[HKC_PART_SPACES];
    size_t space_count;
    hak_label_info infos[HAK_LABELS_MAX + 1];
    hak_class_info classes[HKC_PART_CLASSES];
} hkc_parts;

/* pid 0 = this process. */
hkc_parts *hkc_parts_begin(pid_t pid);
void hkc_parts_context(hkc_parts *p, const hak_ctx *ctx);
/* The list, without empty parts: those of hakmem first. */
void hkc_parts_end(hkc_parts *p);
void hkc_parts_close(hkc_parts *p);
/* The first three at once. */
hkc_parts *hkc_parts_of(pid_t pid, hak_ctx *const *contexts, size_t count);

/* What hkc_parts_context is made of, for bindings that know more of a context than it does itself. */
typedef size_t hkc_parts_within(void *user, uintptr_t start, uintptr_t end);
/* Bytes from start to end, as told by `within`, are hakmem's from now on. user: tells spaces apart; what was
 * taken before is not taken again. retained: bytes that the space keeps for later. */
void hkc_parts_take(hkc_parts *p, hkc_parts_within *within, void *user, size_t retained);
/* The same for memory of guests, which is no context's. */
void hkc_parts_take_guests(hkc_parts *p, hkc_parts_within *within, void *user);
/* What a library maps for itself, past malloc, and touched. */
void hkc_parts_mapped(hkc_parts *p, const char *library, size_t bytes);
/* Counts what is mapped from start to end as a library's, though it may look like malloc's or like a stack. A
 * mapping that the kernel has joined with its neighbours stays what it looks like. */
void hkc_parts_past_malloc(hkc_parts *p, uintptr_t start, uintptr_t end);
/* What a context holds, by other numbers than its own; labels: `count` of them are in p->infos. */
void hkc_parts_live(hkc_parts *p, const hak_ctx *ctx, const hak_stats *stats, size_t count);

/* The member "parts" of the object that is open; nothing where the system does not tell. */
void hkc_parts_json(hkc_json *w, const hkc_parts *p);

#endif
