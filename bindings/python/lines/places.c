#include "lines/places.h"

#include <errno.h>

enum { CALLERS_MAX = 4 /* frames of no Python code on top of one that is */, CODE_BITS = 8192 };

_Atomic uint64_t hkp_places[HKP_PLACES];
static uint32_t (*number_of)(const hkp_place *place);
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
    return (word ^ hkp_place_word(key)) >> HKP_NUMBER_BITS == 0;
}

/* Into a free slot of the group, else into its own. */
static void remember(const void *code, uint64_t key, uint32_t number)
{
    size_t bit = bit_of(code);
    atomic_fetch_or_explicit(&codes[bit / 64], UINT64_C(1) << bit % 64, memory_order_relaxed);
    uint64_t word = hkp_place_word(key) | number;
    size_t slot = hkp_place_slot(key);
    for (size_t i = 0; i < HKP_PLACES_GROUP; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&hkp_places[slot ^ i], &expected, word)) return;
    }
    atomic_store(&hkp_places[slot], word);
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
    atomic_store(&hkp_places[from], atomic_exchange(&hkp_places[slot], word));
    if (atomic_load(&begun) != before) atomic_store(&hkp_places[from], 0);
}

/* -1 = the key is not there. */
static int known(uint64_t key)
{
    size_t slot = hkp_place_slot(key);
    for (size_t i = 0; i < HKP_PLACES_GROUP; i++) {
        uint64_t word = atomic_load_explicit(&hkp_places[slot ^ i], memory_order_relaxed);
        if (!is_of(word, key)) continue;
        move_home(slot, slot ^ i, word);
        return (int)(word ^ hkp_place_word(key));
    }
    return -1;
}

static int resolve(const hkp_place *place, uint64_t key)
{
    int error = errno;
    uint32_t number = number_of(place);
    remember(place->code, key, number);
    errno = error;
    return (int)number;
}

/* Of a frame of no Python code, or one whose body has not begun, nothing is remembered: it may have another
 * caller next time, whose place counts. */
static int find(const hkp_layout *at, const void *frame)
{
    hkp_place place, first = {NULL, 0};
    for (int i = 0; i < CALLERS_MAX && frame; i++, frame = hkp_frame_caller(frame)) {
        uint64_t key = hkp_frame_key(at, frame);
        int number = known(key);
        if (number >= 0) return number;
        if (!hkp_place_of(frame, &place)) continue;
        if (!hkp_place_before(&place)) return resolve(&place, key);
        if (!first.code) first = place;
    }
    return first.code ? (int)number_of(&first) : 0;
}

static int find_in(const hkp_layout *at, const void *thread)
{
    const void *frame = thread ? hkp_frame_of(at, thread) : NULL;
    return find(at, frame);
}

void hkp_places_start(uint32_t (*number)(const hkp_place *place))
{
    number_of = number;
}

void hkp_places_none(bool known)
{
    atomic_store(&hkp_places[hkp_place_slot(HKP_NO_KEY)], known ? hkp_place_word(HKP_NO_KEY) : 0);
}

bool hkp_places_ready(void)
{
    if (!hkp_frames_ready.layout && hkp_frames_prepare()) hkp_places_none(true);
    return hkp_frames_ready.layout;
}

int hkp_place_find(void)
{
    const hkp_layout *at = hkp_frames_ready.layout;
    if (!at) {
        hkp_places_ready();
        return 0;
    }
    return find_in(at, hkp_frames_ready.thread_state());
}

int hkp_place_in(const void *frame)
{
    const uint64_t key = hkp_frame_key(hkp_frames_ready.layout, frame);
    const int number = known(key);
    hkp_place place;
    if (number >= 0) return number;
    if (!hkp_place_of(frame, &place) || hkp_place_before(&place)) return -1;
    return resolve(&place, key);
}

int hkp_place_find_raw(void)
{
    const hkp_layout *at = hkp_frames_ready.layout;
    return at ? find_in(at, hkp_frames_ready.own_state()) : 0; /* a block of MEM or OBJ makes them ready */
}

/* Keys from low to high, in the groups of their slots. */
static void forget(uint64_t low, uint64_t high)
{
    uint64_t group = (low >> 1) / HKP_PLACES_GROUP, groups = (high >> 1) / HKP_PLACES_GROUP - group + 1;
    if (groups > HKP_PLACES / HKP_PLACES_GROUP) groups = HKP_PLACES / HKP_PLACES_GROUP;
    uint64_t from = hkp_place_word(low), words = hkp_place_word(high - low + 2);
    for (; groups > 0; group++, groups--) {
        _Atomic uint64_t *places = &hkp_places[group * HKP_PLACES_GROUP & (HKP_PLACES - 1)];
#pragma GCC unroll 8
        for (size_t i = 0; i < HKP_PLACES_GROUP; i++)
            if (HKP_UNLIKELY(atomic_load_explicit(&places[i], memory_order_relaxed) - from < words))
                atomic_store_explicit(&places[i], 0, memory_order_relaxed);
    }
}

static void forget_all(const hkp_layout *at, const void *code)
{
    size_t units = hkp_code_units(code);
    if (at->code_body != 0) {
        forget((uintptr_t)code, (uintptr_t)code + at->code_body + 2 * units);
        return;
    }
    for (size_t i = 0; i <= units; i++) {
        uint64_t key = hkp_number_key(code, (uint32_t)i - 1); /* -1: before the first */
        forget(key, key);
    }
}

void hkp_places_forget(const void *code)
{
    const hkp_layout *at = hkp_frames_ready.layout;
    if (!at || !has_numbers(code)) return;
    atomic_fetch_add(&begun, 1);
    forget_all(at, code);
    atomic_fetch_add(&ended, 1);
}
