#define _GNU_SOURCE
#include "slot.h"

#include <string.h>
#include <sys/mman.h>

#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define OPEN (PROT_READ | PROT_WRITE)

static size_t page_up(size_t n)
{
    return (n + HKW_PAGE - 1) & ~(HKW_PAGE - 1);
}

/* ---- Extents ------------------------------------------------------------------------------------- */

/* A slot's guard and the slot. */
enum { GUARD_MAPPINGS = 2 };

/* The list of slots, and these: where they are flat and have no guards, those that were used and the others.
 */
static size_t extent_mappings(const hkw_slots *s)
{
    return s->guarded || s->guard_bytes ? 2 : 3;
}

static bool add_extent(hkw_slots *s)
{
    size_t number = atomic_load(&s->extents);
    if (number == HKW_EXTENTS) return false;
    hkw_extent *e = &s->extent[number];
    size_t slots = s->extent_bytes / s->stride;
    if (slots == 0) slots = 1;
    if (!hkw_mappings_take(&s->mappings, extent_mappings(s))) return false;
    for (; slots; slots /= 2) {
        e->reserved_size = slots * s->stride + s->guard_bytes;
        e->reserved = mmap(NULL, e->reserved_size, PROT_NONE, FLAGS, -1, 0);
        if (e->reserved != MAP_FAILED) break;
    }
    e->slot_size = slots * sizeof *e->slot;
    if (slots) e->slot = mmap(NULL, e->slot_size, OPEN, FLAGS, -1, 0);
    if (!slots || (void *)e->slot == MAP_FAILED) {
        if (slots) munmap(e->reserved, e->reserved_size);
        hkw_mappings_give(&s->mappings, extent_mappings(s));
        return false;
    }
    /* A huge page would make 2 MiB resident for a guest that touches one page. */
    madvise(e->reserved, e->reserved_size, MADV_NOHUGEPAGE);
    e->base = (uintptr_t)e->reserved + s->guard_bytes;
    e->slots = slots;
    s->fresh = 0;
    atomic_store_explicit(&s->extents, number + 1, memory_order_release);
    return true;
}

/* A flat slot is opened as a whole when it is first used, so that slots that nobody used are neither locked
 * by mlockall nor written to core dumps. Neighbours become one mapping; with guards each is one of its own,
 * and the system has a limit on these (vm.max_map_count). */
static bool open_flat(hkw_slots *s, const hkw_extent *e, size_t i)
{
    if (s->guarded) return true;
    size_t n = s->guard_bytes ? GUARD_MAPPINGS : 0;
    if (n && !hkw_mappings_take(&s->mappings, n)) return false;
    if (mprotect((char *)(e->base + i * s->stride), s->slot_bytes, OPEN) == 0) return true;
    hkw_mappings_give(&s->mappings, n);
    return false;
}

int hkw_slots_init(hkw_slots *s, const hak_wasm_host_options *o)
{
    const size_t unit = (size_t)64 << 10;
    s->guarded = o->bounds == HAK_WASM_GUARD;
    s->slot_bytes = o->slot_bytes ? o->slot_bytes : s->guarded ? (size_t)4 << 30 : (size_t)256 << 20;
    s->slot_bytes = (s->slot_bytes + unit - 1) / unit * unit;
    s->guard_bytes = o->guard_bytes ? o->guard_bytes : s->guarded ? (size_t)32 << 20 : 0;
    s->guard_bytes = (s->guard_bytes + unit - 1) / unit * unit;
    s->stride = s->slot_bytes + s->guard_bytes;
    s->extent_bytes = o->extent_bytes ? o->extent_bytes : (size_t)256 << 30;
    s->warm_limit = o->warm_bytes == HAK_NONE ? 0 : o->warm_bytes ? o->warm_bytes : (size_t)64 << 20;
    if (hkw_pages_init(&s->pages, o->dirty) != 0) return -1;
    hkw_mappings_init(&s->mappings, o->mappings);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->attached_lock, NULL);
    for (size_t i = 0; i < HKW_SHARDS; i++)
        pthread_mutex_init(&s->shard[i].lock, NULL);
    return 0;
}

static void drop_image(void *user, hkw_slot *slot)
{
    (void)user;
    if (slot->image) hkw_image_unref(slot->image);
}

void hkw_slots_destroy(hkw_slots *s)
{
    hkw_slots_each(s, drop_image, NULL);
    for (size_t i = 0; i < atomic_load(&s->extents); i++) {
        munmap(s->extent[i].reserved, s->extent[i].reserved_size);
        munmap(s->extent[i].slot, s->extent[i].slot_size);
    }
    hkw_mappings_give(&s->mappings, atomic_load(&s->mappings.used));
    for (size_t i = 0; i < HKW_SHARDS; i++)
        pthread_mutex_destroy(&s->shard[i].lock);
    pthread_mutex_destroy(&s->attached_lock);
    pthread_mutex_destroy(&s->lock);
    hkw_pages_destroy(&s->pages);
}

hkw_slot *hkw_slot_at(const hkw_slots *s, const void *p)
{
    size_t extents = atomic_load_explicit(&s->extents, memory_order_acquire);
    for (size_t i = 0; i < extents; i++) {
        const hkw_extent *e = &s->extent[i];
        uintptr_t offset = (uintptr_t)p - e->base;
        if (offset >= e->slots * s->stride) continue;
        return offset % s->stride == 0 ? &e->slot[offset / s->stride] : NULL;
    }
    return NULL;
}

void hkw_slots_each(hkw_slots *s, hkw_slot_fn *fn, void *user)
{
    pthread_mutex_lock(&s->lock);
    size_t extents = atomic_load(&s->extents), fresh = s->fresh;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < extents; i++) {
        const hkw_extent *e = &s->extent[i];
        size_t slots = i + 1 < extents ? e->slots : fresh;
        for (size_t j = 0; j < slots; j++)
            fn(user, &e->slot[j]);
    }
}

/* ---- Protection and mapping ---------------------------------------------------------------------- */

/* Mappings of a slot beyond the extent's one: what is open, what is closed behind it, the image's file. */
static unsigned needed(const hkw_slots *s, const hkw_slot *slot, size_t open, size_t mapped)
{
    if (s->guarded) return mapped ? 3 : open ? 2 : 0;
    return mapped ? 2 : slot->split ? 1 : 0;
}

static int count_mappings(hkw_slots *s, hkw_slot *slot, size_t open, size_t mapped)
{
    unsigned n = needed(s, slot, open, mapped);
    if (n > slot->mappings && !hkw_slots_map(s, n - slot->mappings)) return -1;
    if (n < slot->mappings) hkw_mappings_give(&s->mappings, slot->mappings - n);
    slot->mappings = (uint8_t)n;
    return 0;
}

int hkw_slot_expect(hkw_slots *s, hkw_slot *slot, size_t mapped)
{
    return count_mappings(s, slot, slot->open, mapped);
}

int hkw_slot_open(hkw_slots *s, hkw_slot *slot, size_t bytes)
{
    bytes = page_up(bytes);
    if (!s->guarded || bytes == slot->open) return 0;
    if (bytes > slot->open) {
        if (count_mappings(s, slot, bytes, slot->mapped) != 0) return -1;
        if (mprotect(slot->base + slot->open, bytes - slot->open, OPEN) != 0) {
            count_mappings(s, slot, slot->open, slot->mapped);
            return -1;
        }
    } else if (mprotect(slot->base + bytes, slot->open - bytes, PROT_NONE) != 0) {
        return -1;
    }
    slot->open = bytes;
    return count_mappings(s, slot, bytes, slot->mapped);
}

int hkw_slot_detach(hkw_slots *s, hkw_slot *slot)
{
    if (slot->mapped) {
        void *p = mmap(slot->base, slot->mapped, OPEN, FLAGS | MAP_FIXED, -1, 0);
        if (p == MAP_FAILED) return -1;
        madvise(slot->base, slot->mapped, MADV_NOHUGEPAGE);
        slot->mapped = 0;
        slot->split = true;
        count_mappings(s, slot, slot->open, 0);
    }
    hkw_slot_attach(s, slot, NULL);
    return 0;
}

void hkw_slot_attach(hkw_slots *s, hkw_slot *slot, hak_wasm_image *image)
{
    hak_wasm_image *before = slot->image;
    if (before == image) return;
    if (image) atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&s->attached_lock);
    if (image) image->attached++;
    if (before) before->attached--;
    slot->image = image;
    pthread_mutex_unlock(&s->attached_lock);
    if (before) hkw_image_unref(before);
}

size_t hkw_slot_share(hkw_slots *s, const hkw_slot *slot)
{
    pthread_mutex_lock(&s->attached_lock);
    const hak_wasm_image *image = slot->image;
    const size_t share =
        image ? (image->charged - HKW_PAGE) / image->attached : 0; /* a page is the file's own */
    pthread_mutex_unlock(&s->attached_lock);
    return share;
}

/* ---- Free slots ---------------------------------------------------------------------------------- */

size_t hkw_shard_number(void)
{
    static _Atomic unsigned threads;
    static _Thread_local unsigned number;
    if (number == 0) number = atomic_fetch_add(&threads, 1) + 1;
    return number % HKW_SHARDS;
}

/* Mappings that the slot can do without while it is free. */
static size_t idle(const hkw_slots *s, const hkw_slot *slot)
{
    return s->guarded ? slot->mappings : slot->mapped ? 1 : 0;
}

static void unlink_slot(hkw_slots *s, hkw_shard *shard, hkw_slot *slot)
{
    atomic_fetch_sub_explicit(&shard->count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->idle, idle(s, slot), memory_order_relaxed);
    if (slot->prev) slot->prev->next = slot->next;
    else shard->first = slot->next;
    if (slot->next) slot->next->prev = slot->prev;
    else shard->last = slot->prev;
    slot->prev = slot->next = NULL;
}

/* What is resident stays counted until it is known how much of that is the new memory's. */
static void take_out(hkw_slots *s, hkw_shard *shard, hkw_slot *slot)
{
    unlink_slot(s, shard, slot);
    slot->tail = slot->resident;
    slot->resident = 0;
    atomic_store_explicit(&slot->state, HKW_LIVE, memory_order_relaxed);
}

static void put_warm(hkw_slots *s, hkw_slot *slot)
{
    hkw_shard *shard = &s->shard[slot->shard];
    pthread_mutex_lock(&shard->lock);
    atomic_store_explicit(&slot->state, HKW_WARM, memory_order_relaxed);
    atomic_fetch_add_explicit(&shard->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->idle, idle(s, slot), memory_order_relaxed);
    slot->next = shard->first;
    if (shard->first) shard->first->prev = slot;
    else shard->last = slot;
    shard->first = slot;
    pthread_mutex_unlock(&shard->lock);
}

enum { LOOKED_AT = 8 };

/* The slot of the shard that is cheapest to use: the same image and the same bytes open, or else none of an
 * image and any size. Under the shard's lock. */
static hkw_slot *choose(hkw_slots *s, hkw_shard *shard, size_t bytes, const hak_wasm_image *image)
{
    hkw_slot *plain = NULL, *slot = shard->first;
    for (unsigned i = 0; slot && i < LOOKED_AT; i++, slot = slot->next) {
        if (slot->image == image && (!s->guarded || slot->open == bytes)) break;
        if (!plain && !slot->image) plain = slot;
    }
    if (!slot || slot->image != image || (s->guarded && slot->open != bytes)) slot = plain;
    if (slot) take_out(s, shard, slot);
    return slot;
}

static hkw_slot *take_warm(hkw_slots *s, size_t bytes, const hak_wasm_image *image)
{
    size_t own = hkw_shard_number();
    for (size_t i = 0; i < HKW_SHARDS; i++) {
        hkw_shard *shard = &s->shard[(own + i) % HKW_SHARDS];
        if (i == 0) pthread_mutex_lock(&shard->lock);
        else if (pthread_mutex_trylock(&shard->lock) != 0) continue;
        hkw_slot *slot = choose(s, shard, bytes, image);
        pthread_mutex_unlock(&shard->lock);
        if (slot) return slot;
    }
    return NULL;
}

/* The slot that was used least recently of a group that has as many as are looked through, whatever its
 * image: those of images that nobody asks for would else be more and more. */
static hkw_slot *take_over(hkw_slots *s)
{
    size_t own = hkw_shard_number();
    for (size_t i = 0; i < HKW_SHARDS; i++) {
        hkw_shard *shard = &s->shard[(own + i) % HKW_SHARDS];
        if (atomic_load_explicit(&shard->count, memory_order_relaxed) < LOOKED_AT) continue;
        pthread_mutex_lock(&shard->lock);
        hkw_slot *slot = shard->last;
        if (slot) take_out(s, shard, slot);
        pthread_mutex_unlock(&shard->lock);
        if (!slot || hkw_slot_detach(s, slot) == 0) return slot;
        slot->resident = slot->tail;
        slot->tail = 0;
        put_warm(s, slot);
        return NULL;
    }
    return NULL;
}

static hkw_slot *take_cold(hkw_slots *s)
{
    pthread_mutex_lock(&s->lock);
    hkw_slot *slot = s->cold;
    if (slot) {
        s->cold = slot->next;
        slot->next = NULL;
        atomic_fetch_sub_explicit(&s->idle, idle(s, slot), memory_order_relaxed);
        atomic_store_explicit(&slot->state, HKW_LIVE, memory_order_relaxed);
    }
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static hkw_slot *take_fresh(hkw_slots *s)
{
    hkw_slot *slot = NULL;
    pthread_mutex_lock(&s->lock);
    if (!s->cold) {
        size_t extents = atomic_load(&s->extents);
        if ((extents && s->fresh < s->extent[extents - 1].slots) || add_extent(s)) {
            hkw_extent *e = &s->extent[atomic_load(&s->extents) - 1];
            if (open_flat(s, e, s->fresh)) {
                slot = &e->slot[s->fresh];
                slot->base = (char *)(e->base + s->fresh * s->stride);
                s->fresh++;
            }
        }
    }
    if (slot) atomic_store_explicit(&slot->state, HKW_LIVE, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    return slot;
}

/* Without pages and image. What is open stays open. -1 = the image's mapping cannot be replaced. */
static int give_cold(hkw_slots *s, hkw_slot *slot)
{
    size_t mapped = slot->mapped;
    if (hkw_slot_detach(s, slot) != 0) return -1;
    if (slot->high > mapped && !hkw_pages_return(slot->base + mapped, slot->high - mapped)) {
        /* What is not open cannot be written to, and is zero since it was closed. */
        size_t end = s->guarded && slot->open < slot->high ? slot->open : slot->high;
        if (end > mapped) hkw_pages_clear(&s->pages, slot->base + mapped, end - mapped, true);
    }
    slot->high = slot->resident = 0;
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&slot->state, HKW_COLD, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->idle, idle(s, slot), memory_order_relaxed);
    slot->next = s->cold;
    s->cold = slot;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* ---- Pages beyond the size of a live memory -------------------------------------------------------- */

/* They are zero, and nobody pays for them: the warm budget does, and one memory keeps no more than this.
 * Guests that grow, shrink and grow again find them there. */
enum { TAIL_MOST = 1 << 20 };

static void forget_tail(hkw_slots *s, hkw_slot *slot, size_t bytes)
{
    if (bytes > slot->tail) bytes = slot->tail;
    if (bytes) atomic_fetch_sub_explicit(&s->warm_bytes, bytes, memory_order_relaxed);
    slot->tail -= bytes;
}

void hkw_slot_grows(hkw_slots *s, hkw_slot *slot, size_t bytes)
{
    if (slot->tail) forget_tail(s, slot, bytes);
}

/* The memory ends at `size`. */
static void cut_tail(hkw_slots *s, hkw_slot *slot, size_t size)
{
    if (slot->high <= size || !hkw_pages_return(slot->base + size, slot->high - size)) return;
    slot->high = size;
    forget_tail(s, slot, SIZE_MAX);
}

void hkw_slot_shrunk(hkw_slots *s, hkw_slot *slot, size_t size, size_t end, size_t resident)
{
    if (end > slot->high) slot->high = end;
    if (resident == 0) return;
    size_t warm = atomic_fetch_add_explicit(&s->warm_bytes, resident, memory_order_relaxed);
    slot->tail += resident;
    if (warm + resident > s->warm_limit || slot->tail > TAIL_MOST) cut_tail(s, slot, size);
}

/* ---- Taking and giving ----------------------------------------------------------------------------- */

hkw_slot *hkw_slot_take(hkw_slots *s, size_t bytes, const hak_wasm_image *image)
{
    bytes = page_up(bytes);
    hkw_slot *slot = take_warm(s, bytes, image);
    if (!slot) slot = take_cold(s);
    if (!slot) slot = take_over(s);
    if (!slot) slot = take_fresh(s);
    if (!slot) {
        hkw_slots_cool(s, UINT64_MAX, NULL); /* those that are left have other images */
        slot = take_cold(s);
    }
    if (slot && hkw_slot_open(s, slot, bytes) != 0) {
        hkw_slot_give(s, slot);
        slot = NULL;
    }
    if (slot) {
        hkw_slot_grows(s, slot, bytes);
        if (slot->tail > TAIL_MOST) cut_tail(s, slot, bytes > slot->mapped ? bytes : slot->mapped);
    }
    return slot;
}

/* Resident bytes of a slot that is clean again, its pages kept. */
static size_t clean(hkw_slots *s, hkw_slot *slot, size_t size)
{
    size_t resident = 0, from = slot->mapped;
    if (from) {
        bool dropped = s->pages.method == HAK_WASM_DIRTY_COMPARE && hkw_pages_return(slot->base, from);
        if (!dropped) resident = hkw_pages_restore(&s->pages, slot->base, slot->image->view, from);
    }
    if (size > from) {
        resident += hkw_pages_clear(&s->pages, slot->base + from, size - from, true);
        from = size;
    }
    /* zero already, from a larger memory before */
    if (slot->high > from) resident += hkw_pages_resident(&s->pages, slot->base + from, slot->high - from);
    return resident;
}

void hkw_slot_give(hkw_slots *s, hkw_slot *slot)
{
    forget_tail(s, slot, SIZE_MAX);
    size_t size = page_up(atomic_load_explicit(&slot->size, memory_order_relaxed));
    atomic_store_explicit(&slot->size, 0, memory_order_relaxed);
    if (size > slot->high) slot->high = size;
    bool keep = s->warm_limit && !(slot->image && atomic_load(&slot->image->dropped));
    if (!keep && give_cold(s, slot) == 0) return;
    slot->resident = clean(s, slot, size);
    slot->epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
    slot->shard = (uint8_t)hkw_shard_number();
    size_t warm = atomic_fetch_add_explicit(&s->warm_bytes, slot->resident, memory_order_relaxed);
    if (warm + slot->resident > s->warm_limit) {
        atomic_fetch_sub_explicit(&s->warm_bytes, slot->resident, memory_order_relaxed);
        if (give_cold(s, slot) == 0) return;
        atomic_fetch_add_explicit(&s->warm_bytes, slot->resident, memory_order_relaxed);
    }
    put_warm(s, slot);
}

size_t hkw_slots_cool(hkw_slots *s, uint64_t before, const hak_wasm_image *image)
{
    size_t bytes = 0;
    for (size_t i = 0; i < HKW_SHARDS; i++) {
        hkw_shard *shard = &s->shard[i];
        hkw_slot *out = NULL;
        pthread_mutex_lock(&shard->lock);
        for (hkw_slot *slot = shard->last, *newer; slot && slot->epoch < before; slot = newer) {
            newer = slot->prev;
            if (image && slot->image != image) continue;
            unlink_slot(s, shard, slot);
            atomic_fetch_sub_explicit(&s->warm_bytes, slot->resident, memory_order_relaxed);
            atomic_store_explicit(&slot->state, HKW_LIVE, memory_order_relaxed);
            slot->next = out;
            out = slot;
        }
        pthread_mutex_unlock(&shard->lock);
        while (out) {
            hkw_slot *slot = out;
            size_t resident = slot->resident;
            out = slot->next;
            slot->next = NULL;
            if (give_cold(s, slot) == 0) {
                bytes += resident;
            } else {
                atomic_fetch_add_explicit(&s->warm_bytes, resident, memory_order_relaxed);
                put_warm(s, slot);
            }
        }
    }
    return bytes;
}

/* ---- Mappings ------------------------------------------------------------------------------------ */

/* Cold slots stay open, so that the next memory in them costs no system call. */
static void close_cold(hkw_slots *s)
{
    pthread_mutex_lock(&s->lock);
    for (hkw_slot *slot = s->cold; slot; slot = slot->next) {
        const size_t before = idle(s, slot);
        hkw_slot_open(s, slot, 0);
        atomic_fetch_sub_explicit(&s->idle, before - idle(s, slot), memory_order_relaxed);
    }
    pthread_mutex_unlock(&s->lock);
}

bool hkw_slots_map(hkw_slots *s, size_t n)
{
    if (hkw_mappings_take(&s->mappings, n)) return true;
    if (atomic_load_explicit(&s->idle, memory_order_relaxed) == 0) return false;
    hkw_slots_cool(s, UINT64_MAX, NULL);
    if (s->guarded) close_cold(s);
    return hkw_mappings_take(&s->mappings, n);
}

size_t hkw_slots_within(const hkw_slots *slots, uintptr_t start, uintptr_t end)
{
    size_t sum = 0;
    for (size_t i = 0, all = atomic_load(&slots->extents); i < all; i++) {
        const uintptr_t from = (uintptr_t)slots->extent[i].reserved,
                        to = from + slots->extent[i].reserved_size;
        const uintptr_t first = from > start ? from : start, last = to < end ? to : end;
        if (last > first) sum += last - first;
    }
    return sum;
}
