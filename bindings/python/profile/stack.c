#define _GNU_SOURCE
#include "profile/stack.h"

#include "lines/site.h"
#include "native/native.h"
#include "profile/asker.h"
#include "profile/import.h"
#include "profile/task.h"
#include "walk.h"

#include <stdatomic.h>

typedef struct merge {
    const hkp_stack *stack;
    const hkp_stack_frame *lines;
    size_t next; /* of the lines */
    uintptr_t *frames;
    size_t count, room;
    unsigned walked;
} merge;

static bool lines_left(const merge *m)
{
    return m->next < m->stack->count;
}

static bool put_line(merge *m)
{
    const hkp_stack_frame *line = &m->lines[m->next++];
    m->frames[m->count++] = HKP_SITE_FRAME(line->number);
    const uintptr_t import = m->count < m->room ? hkp_import_of(m->stack, line) : 0;
    if (import != 0) m->frames[m->count++] = import;
    return m->count < m->room;
}

#ifdef HKC_CFI_WALK

/* Of the linker: this library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

enum { WALKED_MOST = 400, KINDS = 1024, SHOWN = 1 };
static hkc_walk walk;
static hkc_image core;

/* Code of extensions is shown. What is not: CPython and the program that it is in, of which lines tell more,
 * and what allocates for others. Known addresses, with a bit that says it. */
static _Atomic uintptr_t kinds[KINDS];

static bool look_at(uintptr_t pc)
{
    hkc_image image;
    if (core.high == 0) core = hkp_native_core();
    if (pc - core.low < core.high - core.low ||
        pc - (uintptr_t)__ehdr_start < (uintptr_t)etext - (uintptr_t)__ehdr_start)
        return false;
    return hkc_image_at(pc, &image) && image.path[0] != '\0' && !hkp_native_for_others(&image);
}

static bool is_shown(uintptr_t pc)
{
    _Atomic uintptr_t *slot = &kinds[(pc * UINT64_C(0x9E3779B97F4A7C15) >> 40) % KINDS];
    uintptr_t known = atomic_load_explicit(slot, memory_order_relaxed);
    if (known >> 1 != pc) {
        known = pc << 1 | (look_at(pc) ? SHOWN : 0);
        atomic_store_explicit(slot, known, memory_order_relaxed);
    }
    return known & SHOWN;
}

/* A frame of machine code. The interpreter loop has the addresses of its lines within its own; further out
 * than the last line is what began the thread. */
static bool put_frame(void *user, uintptr_t pc, uintptr_t end)
{
    merge *m = user;
    bool room = true, loop = false;
    for (; room && lines_left(m) && m->lines[m->next].call != 0 && m->lines[m->next].call < end; loop = true)
        room = put_line(m);
    if (room && !loop && is_shown(pc)) {
        m->frames[m->count++] = pc;
        room = m->count < m->room;
    }
    return room && ++m->walked < WALKED_MOST && (lines_left(m) || m->stack->count == 0);
}

static void put_frames(merge *m)
{
    hkc_cfi_registers here;
    hkc_cfi_here(&here);
    hkc_walk_each(&walk, &here, put_frame, m);
}

#else

static void put_frames(merge *m)
{
    (void)m;
}

#endif

size_t hkp_profile_stack(hak_site site, unsigned depth, uintptr_t *frames, size_t room)
{
    hkp_stack_frame lines[HKP_PROFILE_DEPTH];
    const hkp_stack stack = hkp_stack_read(lines, depth);
    /* room for HKP_STACK_MORE, for a task, and for who asked */
    merge m = {.stack = &stack, .lines = lines, .frames = frames, .room = room - 3};
    if (m.room > 0) put_frames(&m);
    /* of which the walk found no call */
    while (lines_left(&m) && m.count < m.room)
        put_line(&m);
    if (m.count == 0 && site != 0) frames[m.count++] = site;
    if (stack.more || lines_left(&m)) frames[m.count++] = HKP_STACK_MORE;
    const uintptr_t task = hkp_task_now(&stack, lines);
    if (task != 0) frames[m.count++] = task;
    frames[m.count++] = hkp_asker_now(&stack, lines);
    return m.count;
}
