#include "profile/import.h"

#include "base/map.h"
#include "common/json.h"
#include "heap/heap.h"
#include "heap/interpreters.h"
#include "lines/site.h"
#include "profile/known.h"

#include <hakmem/profile.h>

#include <string.h>
#include <sys/mman.h>

enum { NAME = 256, DEEPEST = HAK_PROFILE_DEPTH_MOST };

static const char prefix[] = "import ";
enum { PREFIX = sizeof prefix - 1 };

uintptr_t hkp_import_of(const hkp_stack *stack, const hkp_stack_frame *frame)
{
    static hkp_known find_and_load = {
        .function = "_find_and_load", .file = "importlib._bootstrap>", .seen = 1};
    char name[NAME];
    if (!stack->gil || hkp_interpreters_other() != 0) return 0;
    if (!hkp_known_has(&find_and_load, frame->number)) return 0;
    const void *module = hkp_stack_first_local(frame->frame);
    memcpy(name, prefix, sizeof prefix);
    if (!module || hkp_text_of(module, name + PREFIX, sizeof name - PREFIX) <= 1) return 0;
    const uint32_t number = hkp_site_named(name);
    return number != 0 ? HKP_SITE_FRAME(number) : 0;
}

/* ---- Sums ----------------------------------------------------------------------------------------- */

typedef struct row {
    double live_bytes, live_blocks, total_bytes; /* total: with what it imports in turn */
} row;

typedef struct sums {
    row *rows; /* by number of the line */
    size_t count;
} sums;

static bool is_import(size_t number, hkp_site_info *info)
{
    return hkp_site_at((uint32_t)number, info) && info->file[0] == '\0' &&
           strncmp(info->function, prefix, PREFIX) == 0;
}

static bool is_among(const uint32_t *numbers, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

/* The innermost import has the stack, each one around it has it too, once. */
static bool add_stack(void *user, const hak_profile_stack *stack)
{
    const sums *s = user;
    uint32_t seen[DEEPEST];
    size_t count = 0;
    hkp_site_info info;
    for (unsigned i = 0; i < stack->depth && count < DEEPEST; i++) {
        const uint32_t number = HKP_SITE_OF_FRAME(stack->frames[i]);
        if (!HKP_SITE_IS_FRAME(stack->frames[i]) || number >= s->count || !is_import(number, &info)) continue;
        if (is_among(seen, count, number)) continue;
        if (count == 0) {
            s->rows[number].live_bytes += stack->live_bytes;
            s->rows[number].live_blocks += stack->live_blocks;
        }
        s->rows[number].total_bytes += stack->live_bytes;
        seen[count++] = number;
    }
    return true;
}

void hkp_imports_json(hkc_json *w)
{
    sums s = {.count = hkp_site_numbered()};
    hkp_site_info info;
    s.rows = s.count > 0 ? hkp_pages(s.count * sizeof *s.rows) : NULL;
    if (!s.rows) return;
    hak_profile_visit(hkp_ctx(), add_stack, &s);
    hkc_json_array(w, "imports");
    for (size_t i = 1; i < s.count; i++) {
        const row *r = &s.rows[i];
        if (r->total_bytes < 1 || !is_import(i, &info)) continue;
        hkc_json_object(w, NULL);
        hkc_json_text(w, "name", info.function + PREFIX);
        hkc_json_number(w, "live_bytes", r->live_bytes);
        hkc_json_number(w, "live_blocks", r->live_blocks);
        hkc_json_number(w, "total_bytes", r->total_bytes);
        hkc_json_end(w);
    }
    hkc_json_end(w);
    munmap(s.rows, s.count * sizeof *s.rows);
}
