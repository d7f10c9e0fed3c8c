#include "places.h"

#include "site.h"

#include <errno.h>

enum { CALLERS_MAX = 4 /* frames of no Python code on top of one that is */, CODE_BITS = 8192 };

_Atomic uint64_t hk_py_places[HK_PY_PLACES];
/* A bit for each code object with a number, by its address. Most that die have none. */
static _Atomic uint64_t codes[CODE_BITS / 64];

static size_t bit_of(const void *code)
{
    return (size_t)((uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CODE_BITS;
}

static bool has_numbers(const void *code)
{
    size_t bit = bit_of(code);
    return atomic_load_explicit(&codes[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

static bool is_of(uint64_t word, uint64_t key)
{
    return (word ^ hk_py_place_word(key)) >> HK_PY_NUMBER_BITS == 0;
}

/* Into a free slot of the group, else into its own. */
static void remember(const void *code, uint64_t key, uint32_t number)
{
    size_t bit = bit_of(code);
    atomic_fetch_or_explicit(&codes[bit / 64], UINT64_C(1) << bit % 64, memory_order_relaxed);
    uint64_t word = hk_py_place_word(key) | number;
    size_t slot = hk_py_place_slot(key);
    for (size_t i = 0; i < HK_PY_PLACES_GROUP; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&hk_py_places[slot ^ i], &expected, word)) return;
    }
    atomic_store(&hk_py_places[slot], word);
}

/* A frame of no Python code may have another caller next time: nothing is remembered of it. */
static uint32_t resolve(const void *frame, uint64_t key)
{
    hk_py_place place;
    if (hk_py_place_of(frame, &place)) {
        uint32_t number = hk_py_site_number(&place);
        remember(place.code, key, number);
        return number;
    }
    for (int i = 1; i < CALLERS_MAX && (frame = hk_py_frame_caller(frame)); i++)
        if (hk_py_place_of(frame, &place)) return hk_py_site_number(&place);
    return 0;
}

/* Code objects that begin to be forgotten, and that are. Interpreters with a GIL of their own forget while
 * others look for a place. */
static _Atomic uint32_t begun, ended;

/* Words that are in use move to their own slots; one lost in a race is found again. None that is on its way
 * must outlive its code object: where one may have died meanwhile, it is lost too. */
static void move_home(size_t slot, size_t from, uint64_t word)
{
    uint32_t before = atomic_load(&begun);
    if (slot == from || atomic_load(&ended) != before) return;
    atomic_store(&hk_py_places[from], atomic_exchange(&hk_py_places[slot], word));
    if (atomic_load(&begun) != before) atomic_store(&hk_py_places[from], 0);
}

static uint32_t find(const void *frame, uint64_t key)
{
    size_t slot = hk_py_place_slot(key);
    for (size_t i = 0; i < HK_PY_PLACES_GROUP; i++) {
        uint64_t word = atomic_load_explicit(&hk_py_places[slot ^ i], memory_order_relaxed);
        if (!is_of(word, key)) continue;
        move_home(slot, slot ^ i, word);
        return (uint32_t)(word ^ hk_py_place_word(key));
    }
    int error = errno;
    uint32_t number = resolve(frame, key);
    errno = error;
    return number;
}

void hk_py_places_none(bool known)
{
    atomic_store(&hk_py_places[hk_py_place_slot(HK_PY_NO_KEY)], known ? hk_py_place_word(HK_PY_NO_KEY) : 0);
}

int hk_py_place_find(void)
{
    const hk_py_layout *at = hk_py_frames_ready.layout;
    if (!at) {
        if (hk_py_frames_prepare()) hk_py_places_none(true);
        return 0;
    }
    const void *thread = hk_py_frames_ready.thread_state();
    const void *frame = thread ? hk_py_frame_of(at, thread) : NULL;
    return frame ? (int)find(frame, hk_py_frame_key(at, frame)) : 0;
}

/* Keys from low to high, in the groups of their slots. */
static void forget(uint64_t low, uint64_t high)
{
    uint64_t group = (low >> 1) / HK_PY_PLACES_GROUP, groups = (high >> 1) / HK_PY_PLACES_GROUP - group + 1;
    if (groups > HK_PY_PLACES / HK_PY_PLACES_GROUP) groups = HK_PY_PLACES / HK_PY_PLACES_GROUP;
    uint64_t from = hk_py_place_word(low), words = hk_py_place_word(high - low + 2);
    for (; groups > 0; group++, groups--) {
        _Atomic uint64_t *places = &hk_py_places[group * HK_PY_PLACES_GROUP & (HK_PY_PLACES - 1)];
#pragma GCC unroll 8
        for (size_t i = 0; i < HK_PY_PLACES_GROUP; i++)
            if (HK_PY_UNLIKELY(atomic_load_explicit(&places[i], memory_order_relaxed) - from < words))
                atomic_store_explicit(&places[i], 0, memory_order_relaxed);
    }
}

static void forget_all(const hk_py_layout *at, const void *code)
{
    size_t units = hk_py_code_units(code);
    if (at->code_body != 0) {
        forget((uintptr_t)code, (uintptr_t)code + at->code_body + 2 * units);
        return;
    }
    for (size_t i = 0; i <= units; i++) {
        uint64_t key = hk_py_number_key(code, (uint32_t)i - 1); /* -1: before the first */
        forget(key, key);
    }
}

void hk_py_places_forget(const void *code)
{
    const hk_py_layout *at = hk_py_frames_ready.layout;
    if (!at || !has_numbers(code)) return;
    atomic_fetch_add(&begun, 1);
    forget_all(at, code);
    atomic_fetch_add(&ended, 1);
}
