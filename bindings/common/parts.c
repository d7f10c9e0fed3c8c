#include "common/parts.h"

#include "common/format.h"
#include "common/pages.h"

#include <hakmem/profile.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_NAMED = 3, LABELS_NAMED = 6, MAPPERS_NAMED = 2, SMALLEST_PAGE = 4096 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- What is hakmem's ----------------------------------------------------------------------------- */

hkc_parts *hkc_parts_begin(pid_t pid)
{
    hkc_parts *p = hkc_pages(sizeof *p);
    if (!p) return NULL;
    if (pid == 0) pid = getpid();
    p->pagemap = hkc_proc_open(pid, "pagemap");
    if (!hkc_smaps_read(&p->maps, pid)) {
        hkc_parts_close(p);
        return NULL;
    }
    p->resident = hkc_resident_of(pid);
    return p;
}

void hkc_parts_close(hkc_parts *p)
{
    if (!p) return;
    hkc_smaps_close(&p->maps);
    if (p->pagemap >= 0) close(p->pagemap);
    hkc_pages_give(p, sizeof *p);
}

static bool taken_before(hkc_parts *p, const void *of)
{
    for (size_t i = 0; i < p->space_count; i++)
        if (p->spaces[i] == of) return true;
    if (p->space_count < HKC_PART_SPACES) p->spaces[p->space_count++] = of;
    return false;
}

/* Halves the range until all of a piece is hakmem's, or nothing of it, and returns the resident bytes of the former. */
static size_t resident_of(int pagemap, hkc_parts_within *within, void *user, uintptr_t start, uintptr_t end)
{
    const size_t inside = within(user, start, end);
    if (inside == 0) return 0;
    if (inside == end - start || end - start <= SMALLEST_PAGE)
        return hkc_resident_within(pagemap, start, end);
    const uintptr_t middle = start + (end - start) / SMALLEST_PAGE / 2 * SMALLEST_PAGE;
    return resident_of(pagemap, within, user, start, middle) +
           resident_of(pagemap, within, user, middle, end);
}

/* Returns the resident bytes. The kernel makes mappings side by side one: where it does not tell which pages are
 * resident, they are shared out by length. */
static size_t take(hkc_parts *p, hkc_parts_within *within, void *user)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->maps.count; i++) {
        hkc_mapping *m = &p->maps.at[i];
        const size_t whole = m->end - m->start, inside = m->resident > 0 ? within(user, m->start, m->end) : 0;
        if (inside == 0) continue;
        size_t n = m->resident;
        if (inside < whole && p->pagemap >= 0)
            n = least(n, resident_of(p->pagemap, within, user, m->start, m->end));
        else if (inside < whole) n = (size_t)((double)n * ((double)inside / (double)whole));
        sum += n;
        m->resident -= n;
        m->own = m->own > n ? m->own - n : 0;
    }
    return sum;
}

void hkc_parts_take(hkc_parts *p, hkc_parts_within *within, void *user, size_t retained)
{
    if (!p || taken_before(p, user)) return;
    p->ours += take(p, within, user);
    p->unused += retained;
}

void hkc_parts_take_guests(hkc_parts *p, hkc_parts_within *within, void *user)
{
    if (p && !taken_before(p, user)) p->guests += take(p, within, user);
}

static void add_label(hkc_parts *p, const char *name, size_t bytes)
{
    size_t i = 0;
    while (i < p->label_count && strcmp(p->labels[i].name, name) != 0)
        i++;
    if (i == HKC_PART_LABELS) return; /* is among the others */
    if (i == p->label_count) {
        snprintf(p->labels[i].name, sizeof p->labels[i].name, "%s", name);
        p->label_count++;
    }
    p->labels[i].bytes += bytes;
    p->labelled += bytes;
}

static size_t pinned_bytes(hkc_parts *p, const hak_ctx *ctx)
{
    const int n = hak_classes_stats(ctx, p->classes, HKC_PART_CLASSES);
    size_t sum = 0;
    for (int i = 0; i < n && i < HKC_PART_CLASSES; i++)
        sum += p->classes[i].pinned_bytes;
    return sum;
}

/* Returns how much of a profile's table the context is not charged for. */
static size_t apart_bytes(const hak_ctx *ctx)
{
    hak_profile_info info = {.size = sizeof info};
    return hak_profile_stats(ctx, &info) == 0 ? info.apart_bytes : 0;
}

void hkc_parts_live(hkc_parts *p, const hak_ctx *ctx, const hak_stats *stats, size_t count)
{
    if (!p) return;
    p->live += stats->live_bytes;
    p->between += pinned_bytes(p, ctx);
    p->metadata += stats->metadata_bytes + apart_bytes(ctx);
    p->unused += stats->cached_bytes - least(stats->cached_bytes, stats->released_bytes);
    for (size_t i = 0; i < count; i++)
        if (p->infos[i].label && p->infos[i].live_bytes > 0)
            add_label(p, p->infos[i].name, p->infos[i].live_bytes);
}

static size_t within_space(void *space, uintptr_t start, uintptr_t end)
{
    return hak_space_bytes_within(space, (const void *)start, end - start);
}

void hkc_parts_context(hkc_parts *p, const hak_ctx *ctx)
{
    hak_stats stats = {.size = sizeof stats};
    if (!p || hak_ctx_stats(ctx, &stats) != 0) return;
    const int n = hak_labels_stats(ctx, p->infos, HAK_LABELS_MAX + 1);
    hkc_parts_live(p, ctx, &stats, n > 0 ? (size_t)n : 0);
    hkc_parts_take(p, within_space, hak_ctx_space(ctx), stats.retained_bytes);
}

/* ---- The list ------------------------------------------------------------------------------------- */

/* Returns the new part; NULL = it would be empty, or there is no room: it is the rest then. */
static hkc_part *add(hkc_parts *p, size_t bytes, const char *kind, const char *hint, const char *name, ...)
    HKC_FORMAT(5, 6);

static hkc_part *add(hkc_parts *p, size_t bytes, const char *kind, const char *hint, const char *name, ...)
{
    va_list args;
    if (bytes == 0 || p->count == HKC_PARTS) return NULL;
    hkc_part *part = &p->part[p->count++];
    part->kind = kind;
    part->bytes = bytes;
    va_start(args, name);
    vsnprintf(part->name, sizeof part->name, name, args);
    va_end(args);
    snprintf(part->hint, sizeof part->hint, "%s", hint);
    p->sum += bytes;
    return part;
}

static size_t share(size_t n, size_t of, size_t all)
{
    return all > 0 ? (size_t)((double)n * ((double)of / (double)all)) : 0;
}

/* Returns the one with most bytes; NULL = none has any. */
static hkc_parts_label *largest_of(hkc_parts_label *labels, size_t count)
{
    hkc_parts_label *largest = NULL;
    for (size_t i = 0; i < count; i++)
        if (labels[i].bytes > 0 && (!largest || labels[i].bytes > largest->bytes)) largest = &labels[i];
    return largest;
}

/* The largest labels first. `resident`: of the live bytes those that are; what was never written to is not,
 * and nobody knows of which label that is. */
static void add_live(hkc_parts *p, size_t resident)
{
    static const char hint[] = "blocks in use: a profile names their lines";
    size_t left = resident;
    for (size_t named = 0; named < LABELS_NAMED; named++) {
        hkc_parts_label *largest = largest_of(p->labels, p->label_count);
        if (!largest) break;
        const size_t bytes = least(share(resident, largest->bytes, p->live), left);
        add(p, bytes, "live", hint, "live: %s", largest->name);
        left -= bytes;
        largest->bytes = 0;
    }
    if (left < LABELS_NAMED && left < resident) { /* of rounding */
        p->part[p->count - 1].bytes += left;
        p->sum += left;
        return;
    }
    add(p, left, "live", hint, left == resident ? "live blocks" : "live: all others");
}

/* hakmem's own resident bytes are known; the sums of its contexts are of memory that may never have been
 * touched. Pages without a block are the first that nobody touched. */
static void add_ours(hkc_parts *p)
{
    size_t left = p->ours;
    const size_t metadata = least(p->metadata, left), live = least(p->live, left - metadata);
    const size_t between = least(p->between, left - metadata - live);
    add_live(p, live);
    add(p, between, "between", "held by the live blocks beside it", "free between live blocks");
    left -= metadata + live + between;
    const size_t cached = least(p->unused - least(p->unused, between), left);
    add(p, cached, "cached", "trim gives it back, and so does time", "free pages and caches");
    /* Of a space that others use too, or of a huge page. */
    add(p, left - cached, "unnamed", "contexts not shown here, huge pages", "hakmem's other memory");
    add(p, metadata, "metadata", "bitmaps, labels, profiles: with the heap", "hakmem's own tables");
}

static size_t sum_of(const hkc_parts *p, hkc_mapping_kind kind, size_t *mappings)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->maps.count; i++) {
        if (p->maps.at[i].kind != kind) continue;
        sum += p->maps.at[i].resident;
        if (mappings && p->maps.at[i].resident > 0) ++*mappings;
    }
    return sum;
}

/* The name with the largest sum of a kind of mappings that has not been taken; 0 = none. */
static uint32_t largest_name(const hkc_parts *p, const size_t *sums)
{
    uint32_t largest = 0;
    for (uint32_t i = 1; i < p->maps.name_count; i++)
        if (sums[i] > (largest ? sums[largest] : 0)) largest = i;
    return largest;
}

/* ---- Other allocators ----------------------------------------------------------------------------- */

/* Libraries that are known to map memory for allocators of their own. */
static bool maps_itself(const char *file)
{
    static const char *const known[] = {"openblas", "libmkl",   "jemalloc", "mimalloc", "tcmalloc", "polars",
                                        "libarrow", "libtorch", "onnxrun",  "libjvm",   "libnode",  "libv8",
                                        "duckdb",   "snmalloc", "libgo.so", "wasmtime"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(file, known[i])) return true;
    return false;
}

void hkc_parts_mapped(hkc_parts *p, const char *library, size_t bytes)
{
    if (!p || p->mapper_count == HKC_PART_MAPPERS) return;
    hkc_parts_label *m = &p->mappers[p->mapper_count++];
    snprintf(m->name, sizeof m->name, "%s", library);
    m->bytes = bytes;
}

void hkc_parts_past_malloc(hkc_parts *p, uintptr_t start, uintptr_t end)
{
    size_t low = 0, high = p ? p->maps.count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->maps.at[middle].start < start) low = middle + 1;
        else high = middle;
    }
    for (; p && low < p->maps.count && p->maps.at[low].end <= end; low++) {
        uint8_t *const kind = &p->maps.at[low].kind;
        if (*kind == HKC_MAPPING_MALLOC || *kind == HKC_MAPPING_STACK) *kind = HKC_MAPPING_ANONYMOUS;
    }
}

/* The largest first; what is left of the anonymous mappings. */
static size_t add_mappers(hkc_parts *p, size_t left)
{
    for (size_t named = 0; named < FILES_NAMED; named++) {
        hkc_parts_label *largest = largest_of(p->mappers, p->mapper_count);
        if (!largest) break;
        const size_t bytes = least(largest->bytes, left);
        add(p, bytes, "mapped", "past malloc: a profile names the lines", "mapped by %.30s", largest->name);
        left -= bytes;
        largest->bytes = 0;
    }
    return left;
}

/* Nothing tells who made a mapping without a name. Libraries that are loaded and do such things are named. */
static void add_anonymous(hkc_parts *p)
{
    char hint[HKC_PART_HINT] = "of libraries or the program";
    size_t named = 0;
    for (uint32_t i = 1; i < p->maps.name_count && named < MAPPERS_NAMED; i++) {
        const char *file = p->maps.names[i];
        if (!maps_itself(file)) continue;
        const size_t used = named > 0 ? strlen(hint) : 0;
        const int n = (int)least(strcspn(file, ".-"), 16);
        snprintf(hint + used, sizeof hint - used, "%s%.*s", named++ ? ", " : "perhaps of ", n, file);
    }
    const size_t left = add_mappers(p, sum_of(p, HKC_MAPPING_ANONYMOUS, NULL));
    add(p, left, "mapped", hint, "mapped past malloc");
}

static void add_named(hkc_parts *p)
{
    size_t rest = 0, *sums = p->maps.sums;
    memset(sums, 0, p->maps.name_count * sizeof *sums);
    for (size_t i = 0; i < p->maps.count; i++) {
        const hkc_mapping *m = &p->maps.at[i];
        if (m->kind == HKC_MAPPING_NAMED && m->name) sums[m->name] += m->resident;
        else if (m->kind == HKC_MAPPING_NAMED) rest += m->resident;
    }
    for (int named = 0; named < FILES_NAMED; named++) {
        const uint32_t name = largest_name(p, sums);
        if (!name) break;
        add(p, sums[name], "mapped", "mapped by who gave it the name", "mapped as %.30s",
            p->maps.names[name]);
        sums[name] = 0;
    }
    for (uint32_t i = 1; i < p->maps.name_count; i++)
        rest += sums[i];
    add(p, rest, "mapped", "mapped by who gave it a name", "mapped under other names");
}

/* ---- Files ---------------------------------------------------------------------------------------- */

static void add_file(hkc_parts *p, size_t bytes, size_t own, const char *name, size_t files)
{
    char hint[HKC_PART_HINT] = "code, shared with all that run it";
    if (own >= bytes / 16 && own > 0)
        snprintf(hint, sizeof hint, "%zu KiB own data, else shared code", own >> 10);
    if (files > 0) add(p, bytes, "file", hint, "other files (%zu)", files);
    else add(p, bytes, "file", hint, "%s", name);
}

/* The largest are named. */
static void add_files(hkc_parts *p)
{
    const size_t names = p->maps.name_count;
    size_t *sums = p->maps.sums, *own = sums + names, rest = 0, rest_own = 0, files = 0;
    memset(sums, 0, 2 * names * sizeof *sums);
    for (size_t i = 0; i < p->maps.count; i++) {
        const hkc_mapping *m = &p->maps.at[i];
        if (m->kind != HKC_MAPPING_FILE) continue;
        sums[m->name] += m->resident;
        own[m->name] += m->own;
    }
    for (int named = 0; named < FILES_NAMED; named++) {
        const uint32_t name = largest_name(p, sums);
        if (!name) break;
        add_file(p, sums[name], own[name], p->maps.names[name], 0);
        sums[name] = own[name] = 0;
    }
    for (uint32_t i = 0; i < names; i++) {
        files += sums[i] > 0;
        rest += sums[i];
        rest_own += own[i];
    }
    add_file(p, rest, rest_own, "", files);
}

static void add_others(hkc_parts *p)
{
    size_t stacks = 0;
    add(p, p->guests, "guests", "limit the guests, or close them", "memory of guests");
    add(p, sum_of(p, HKC_MAPPING_MALLOC, NULL), "malloc", "malloc_trim(), or hakmem in its place",
        "the C library's malloc");
    add_anonymous(p);
    add_named(p);
    add(p, sum_of(p, HKC_MAPPING_CODE, NULL), "code", "the JIT compiler has limits of its own",
        "code of a JIT compiler");
    const size_t bytes = sum_of(p, HKC_MAPPING_STACK, &stacks);
    add(p, bytes, "stacks", "fewer threads, or less recursion in them", "stacks of threads (%zu)", stacks);
    add(p, sum_of(p, HKC_MAPPING_MAIN_STACK, NULL), "stacks", "less recursion", "stack of the main thread");
    add_files(p);
    add(p, sum_of(p, HKC_MAPPING_SHARED, NULL), "shared", "as much as its users do not unmap",
        "shared memory");
}

void hkc_parts_end(hkc_parts *p)
{
    if (!p) return;
    add_ours(p);
    add_others(p);
    size_t rest = p->ours + p->guests + p->maps.beyond;
    for (size_t i = 0; i < p->maps.count; i++)
        rest += p->maps.at[i].resident;
    rest -= least(rest, p->sum);
    if (p->count == HKC_PARTS) p->part[HKC_PARTS - 1].bytes += rest, p->sum += rest;
    else add(p, rest, "rest", "of the kernel's", "the rest");
    hkc_smaps_close(&p->maps);
}

hkc_parts *hkc_parts_of(pid_t pid, hak_ctx *const *contexts, size_t count)
{
    hkc_parts *p = hkc_parts_begin(pid);
    for (size_t i = 0; i < count; i++)
        hkc_parts_context(p, contexts[i]);
    hkc_parts_end(p);
    return p;
}

void hkc_parts_json(hkc_json *w, const hkc_parts *p)
{
    if (!p || p->count == 0) return;
    hkc_json_array(w, "parts");
    for (size_t i = 0; i < p->count; i++) {
        hkc_json_object(w, NULL);
        hkc_json_text(w, "kind", p->part[i].kind);
        hkc_json_text(w, "name", p->part[i].name);
        hkc_json_size(w, "bytes", p->part[i].bytes);
        hkc_json_text(w, "hint", p->part[i].hint);
        hkc_json_end(w);
    }
    hkc_json_end(w);
}
