#define _GNU_SOURCE
#include "names.h"

#include "cfi.h"
#include "symbols.h"
#include "texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#ifndef _WIN32
#include <unistd.h>
#endif

enum { FIRST_ROOM = 1024 };

/* ---- Memory --------------------------------------------------------------------------------------- */

/* NULL = no memory. */
static const char *keep(hkc_names *n, const char *text)
{
    const char *kept = hkc_texts_keep(&n->texts, text);
    if (!kept) n->poor = true;
    return kept;
}

static bool grow(hkc_names *n)
{
    const size_t room = n->room != 0 ? 2 * n->room : FIRST_ROOM;
    hkc_name *larger = hkc_pages(room * sizeof *larger);
    if (!larger) return false;
    if (n->names) {
        memcpy(larger, n->names, n->count * sizeof *larger);
        hkc_pages_give(n->names, n->room * sizeof *n->names);
    }
    n->names = larger;
    n->room = room;
    return true;
}

void hkc_names_close(hkc_names *n)
{
    hkc_texts_close(&n->texts);
    hkc_pages_give(n->names, n->room * sizeof *n->names);
    *n = (hkc_names){0};
}

/* ---- Order ---------------------------------------------------------------------------------------- */

/* The first of `count` whose pc is not below. */
static size_t first_from(const hkc_name *names, size_t count, uintptr_t pc)
{
    size_t low = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (names[low + half].pc < pc) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

const hkc_name *hkc_names_find(const hkc_names *n, uintptr_t pc)
{
    const size_t at = first_from(n->names, n->sorted, pc);
    return at < n->sorted && n->names[at].pc == pc ? &n->names[at] : NULL;
}

static void sift(hkc_name *names, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && names[child].pc < names[child + 1].pc;
        if (names[at].pc >= names[child].pc) return;
        const hkc_name held = names[at];
        names[at] = names[child];
        names[child] = held;
    }
}

/* Heap sort: qsort may call malloc. Of equal ones, those that were looked up stay. */
static void sort(hkc_names *n)
{
    hkc_name *names = n->names;
    for (size_t at = n->count / 2; at-- > 0;)
        sift(names, at, n->count);
    for (size_t end = n->count; end-- > 1;) {
        const hkc_name held = names[0];
        names[0] = names[end];
        names[end] = held;
        sift(names, 0, end);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n->count; i++) {
        if (kept > 0 && names[kept - 1].pc == names[i].pc) {
            if (names[i].looked_up) names[kept - 1] = names[i];
        } else {
            names[kept++] = names[i];
        }
    }
    n->count = n->sorted = kept;
}

bool hkc_names_add(hkc_names *n, uintptr_t pc)
{
    if (hkc_names_find(n, pc)) return true;
    if (n->count > n->sorted && n->names[n->count - 1].pc == pc) return true;
    if (n->count == n->room) {
        /* Most are there already, since stacks share their frames. */
        if (n->count > n->sorted) sort(n);
        if (hkc_names_find(n, pc)) return true;
        if (n->count >= n->room / 2 && !grow(n)) return false;
    }
    n->names[n->count++] = (hkc_name){.pc = pc};
    return true;
}

/* ---- Symbols -------------------------------------------------------------------------------------- */

/* The names in one image. */
typedef struct search {
    hkc_names *all;
    hkc_name *names;
    size_t count;
} search;

/* The call may be the last instruction. */
static size_t first_behind(const search *s, uintptr_t start)
{
    return first_from(s->names, s->count, start + 1);
}

/* The highest symbol below each; for those between two symbols it is that of the one before. */
static void see_start(void *user, uintptr_t start, const char *name, const char *file)
{
    const search *s = user;
    const size_t at = first_behind(s, start);
    (void)name;
    (void)file;
    if (at < s->count && !s->names[at].looked_up && s->names[at].start < start) s->names[at].start = start;
}

static bool is_plainer(const char *name, const char *than)
{
    return strlen(name) < strlen(than); /* malloc, __libc_malloc; read, read_alias_2 */
}

static void see_name(void *user, uintptr_t start, const char *name, const char *file)
{
    const search *s = user;
    for (size_t at = first_behind(s, start); at < s->count; at++) {
        hkc_name *of = &s->names[at];
        if (of->looked_up) continue;
        if (of->start != start) break;
        if (of->function && !is_plainer(name, of->function)) continue;
        of->function = keep(s->all, name);
        of->file = file ? keep(s->all, file) : NULL;
    }
}

/* Of a function that the table does not have, the symbol further down is another one's. */
static bool is_in_function(uintptr_t pc, uintptr_t start)
{
#ifdef HKC_CFI_WALK
    const uintptr_t function = hkc_cfi_function(pc);
    return function != 0 && start >= function;
#else
    (void)pc;
    return start != 0;
#endif
}

static void spread_starts(const search *s)
{
    uintptr_t start = 0;
    for (size_t i = 0; i < s->count; i++) {
        hkc_name *of = &s->names[i];
        if (of->looked_up) continue;
        if (of->start > start) start = of->start;
        of->start = is_in_function(of->pc, start) ? start : 0;
    }
}

/* What names of one image have in common. `path` is that of the image, which the program's name comes to. */
static hkc_name common_of(hkc_names *n, const hkc_image *image, char path[HKC_IMAGE_PATH])
{
    char id[2 * HKC_IMAGE_ID + 1];
    hkc_name common = {0};
#ifdef _WIN32
    const char between = '\\';
#else
    const char between = '/';
    if (path[0] == '\0') {
        const ssize_t size = readlink("/proc/self/exe", path, HKC_IMAGE_PATH - 1);
        path[size > 0 ? size : 0] = '\0';
    }
#endif
    common.path = keep(n, path);
    const char *slash = common.path ? strrchr(common.path, between) : NULL;
    common.module = slash ? slash + 1 : common.path;
    if (!image->build_id) return common;
    for (size_t i = 0; i < image->build_id_size; i++)
        snprintf(id + 2 * i, 3, "%02x", image->build_id[i]);
    common.build_id = keep(n, id);
    return common;
}

static void look_up(hkc_names *n, const hkc_image *image, char path[HKC_IMAGE_PATH], hkc_name *names,
                    size_t count)
{
    search s = {n, names, count};
    hkc_name common = {0};
    size_t news = 0;
    for (size_t i = 0; i < count; i++)
        news += !names[i].looked_up;
    if (news == 0) return;
    hkc_symbols_read(image, "/usr/lib/debug", see_start, &s);
    spread_starts(&s);
    hkc_symbols_read(image, "/usr/lib/debug", see_name, &s);
    for (size_t i = 0; i < count; i++) {
        if (names[i].looked_up) {
            common = names[i];
            continue;
        }
        char offset[64];
        if (!common.module) common = common_of(n, image, path);
        names[i].module = common.module;
        names[i].path = common.path;
        names[i].build_id = common.build_id;
        names[i].address = names[i].pc - image->bias;
        names[i].looked_up = true;
        if (names[i].function) continue;
        snprintf(offset, sizeof offset, "0x%" PRIxPTR, names[i].address);
        names[i].function = keep(n, offset);
    }
}

void hkc_names_resolve(hkc_names *n)
{
    const int saved = errno;
    if (n->count > n->sorted) sort(n);
    for (size_t i = 0, end; i < n->count; i = end) {
        hkc_image image;
        hkc_image_texts copied;
        end = i + 1;
        if (!hkc_image_copy_at(n->names[i].pc - 1, &image, &copied)) continue;
        while (end < n->count && n->names[end].pc - 1 < image.high)
            end++;
        look_up(n, &image, copied.path, n->names + i, end - i);
    }
    n->resolved = n->count;
    errno = saved;
}
