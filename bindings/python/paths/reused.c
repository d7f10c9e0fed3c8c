#include "paths/reused.h"

#include "base/cpython.h"
#include "heap/heap.h"
#include "lines/kept.h"
#include "lines/site.h"
#include "profile/asker.h"

#include <hakmem/profile.h>

#include <stdatomic.h>
#include <string.h>

enum { OB_TYPE = 8, CREATE = 0, REMOVED = 2 /* of PyRefTracerEvent */, FIRST = 0x030d };

typedef int tracer_fn(void *object, int event, void *data);
static int (*set_tracer)(tracer_fn *tracer, void *data);
static tracer_fn *(*get_tracer)(void **data);

static hkp_reused wished;
static bool marked, profiled; /* blocks have marks; a profile runs that follows */
/* Arrays, which stay with the constants of this file. */
static const char followed[] = "followed", unasked[] = "not asked for",
                  other_tool[] = "another tool follows references",
                  too_old[] = "CPython before 3.13 does not tell who takes it",
                  unknown[] = "this CPython does not export what it takes",
                  no_lines[] = "a free-threaded build has no lines",
                  elsewhere[] = "objects are not hakmem's, or not where they are looked for",
                  useless[] = "this is for lines or a profile (HAKMEM_LABELS=site, HAKMEM_PROFILE)";
static const char *_Atomic state = unasked;
_Thread_local const void *hkp_reused_fresh;

const char *hkp_reused_wish(hkp_reused wish, bool serves)
{
    const hkp_python *python = hkp_python_find();
    wished = wish;
    if (wish != HKP_REUSED_ON) return NULL;
    return !python || python->version < FIRST ? too_old : serves ? NULL : useless;
}

const char *hkp_reused_state(void)
{
    return atomic_load(&state);
}

static void note(const char *what)
{
    hkp_kept_followed = what == followed && marked;
    atomic_store(&state, what);
}

/* The last bytes of a block are its mark, of which the line is a part. */
HKP_INLINE void put_number(void *p, size_t size, uint32_t number)
{
    hkp_site_mark mark;
    char *end = (char *)p + size - sizeof mark;
    memcpy(&mark, end, sizeof mark);
    mark = (mark & ~(hkp_site_mark)HKP_NUMBER_MAX) | number;
    memcpy(end, &mark, sizeof mark);
}

/* The block may be a sample, or not be ours. What nobody labelled has no mark. A fresh block is in the profile already.
 * It gets the line all the same, because the note may be left of a block that the tracer saw and that was no sample. */
static __attribute__((noinline)) void reuse_slowly(void *p)
{
    const bool fresh = p == hkp_reused_fresh;
    if (fresh) hkp_reused_fresh = NULL;
    if (fresh && !marked) return;
    hak_ctx *heap = hkp_heap();
    const size_t size = hak_usable_size(heap, p);
    if (size == 0) return;
    const hak_label label = hak_label_of(heap, p);
    if (marked && label != 0) put_number(p, size, (uint32_t)hkp_place_find());
    if (fresh || !profiled) return;
    hkp_asking = HKP_OBJ;
    hak_profile_reuse(heap, p, label, 0);
}

/* Frames of 3.13 and later are found in the same way. */
static int on_reference(void *object, int event, void *unused)
{
    (void)unused;
    if (HKP_UNLIKELY(event != CREATE)) {
        if (event == REMOVED) note(other_tool);
        return 0;
    }
    const hkp_kept *kind = hkp_kept_of(hkp_load(object, OB_TYPE));
    if (HKP_LIKELY(!kind)) return 0;
    char *p = (char *)object - kind->before;
    const uint32_t bin = hak_inline_kind(hkp_mine, p);
    if (HKP_LIKELY(bin < HAK_INLINE_EIGHTS / 8)) {
        if (!marked) return 0;
        const int number = hkp_place_now(HKP_3_13);
        if (HKP_LIKELY(number >= 0)) {
            put_number(p, (bin + 1) * 8, (uint32_t)number);
            return 0;
        }
    }
    reuse_slowly(p);
    return 0;
}

/* Whether blocks of objects are hakmem's, and begin where they are looked for: a tuple of a size that is rare, so
 * that it comes from no free list. */
static bool is_as_expected(void)
{
    enum { RARE = 19 };
    void *(*new_tuple)(intptr_t n);
    void (*release)(void *object);
    const hkp_kept *kind = hkp_kept_of(hkp_symbol("PyTuple_Type"));
    if (!kind || !hkp_function("PyTuple_New", &new_tuple) || !hkp_function("Py_DecRef", &release))
        return false;
    void *tuple = new_tuple(RARE);
    if (!tuple) return false;
    const bool is = hkp_is_block((char *)tuple - kind->before);
    release(tuple);
    return is;
}

/* NULL = it can be done. */
static const char *unable(const hkp_python *python)
{
    if (!python || python->version < FIRST) return too_old;
    if (!hkp_function("PyRefTracer_SetTracer", &set_tracer) ||
        !hkp_function("PyRefTracer_GetTracer", &get_tracer) || !hkp_kept_find())
        return unknown;
    if (python->free_threading) return no_lines;
    return is_as_expected() ? NULL : elsewhere;
}

static void follow(bool on)
{
    void *data;
    tracer_fn *now = get_tracer(&data);
    if (on && now && now != on_reference) {
        note(other_tool);
        return;
    }
    if (on != (now == on_reference) && set_tracer(on ? on_reference : NULL, NULL) != 0) return;
    note(on ? followed : unasked);
}

void hkp_reused_follow(bool profile, bool exact)
{
    const bool asked = wished == HKP_REUSED_ON, may = wished != HKP_REUSED_OFF;
    const bool marks = may && hkp_site_count() != 0, stacks = profile && may && (exact || asked);
    const hkp_python *python = hkp_python_find();
    const char *why_not = NULL;
    hkp_kept_find();
    if (marks || stacks || !python || python->version < FIRST) why_not = unable(python);
    else if (!get_tracer) return; /* nothing was begun */
    if (why_not) {
        note(why_not);
        return;
    }
    marked = marks;
    profiled = stacks;
    follow(marked || profiled);
}
