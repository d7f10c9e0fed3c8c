/* The memory of a profile, and its two hash tables. A profile takes units as the context takes them for its
 * own data, charged and counted as metadata, or pages apart from the context. Stacks stay until the profile is cleared;
 * records of samples are used again. */
#include "profile/profile.h"

#include "heap/metadata.h"
#include "heap/units.h"
#include "space/apart.h"

/* A counted profile has thousands of stacks, and looks few of them up: its buckets are fuller. */
enum {
    FIRST_UNITS = 2,
    MORE_UNITS = 4,
    FIRST_BUCKETS = 256,
    BUCKETS_MOST = 1 << 17,
    FULL = 2,
    FULL_COUNTED = 4
};

/* ---- Pages ---------------------------------------------------------------------------------------- */

/* Of so many units. */
static size_t room_in(size_t units)
{
    return (units << HK_UNIT_SHIFT) - 2 * HK_BESIDE;
}

/* A space in a buffer of its host has nothing apart from that. */
static hk_profile_pages pages_new(hak_ctx *ctx, bool apart, size_t units)
{
    bool zero;
    if (apart && !ctx->space->buffer_only)
        return (hk_profile_pages){hk_apart_take(ctx->space, room_in(units)), room_in(units), NULL};
    hk_slab *s = hk_meta_units(ctx, room_in(units), &zero);
    if (!s) return (hk_profile_pages){NULL, 0, NULL};
    return (hk_profile_pages){hk_meta_start(ctx, s), hk_meta_bytes(s), s};
}

static void pages_give(hak_ctx *ctx, const hk_profile_pages *pages)
{
    if (pages->slab) hk_units_give(ctx, pages->slab);
    else hk_apart_give(ctx->space, pages->at);
}

static void add_bytes(hk_profile *k, const hk_profile_pages *pages, size_t bytes)
{
    k->bytes += bytes;
    if (!pages->slab) k->apart_bytes += bytes;
}

/* Within the bytes that the profile may have. */
static hk_profile_pages take(hk_profile *k, size_t units)
{
    size_t bytes = units << HK_UNIT_SHIFT;
    if (bytes > k->table_bytes || k->bytes > k->table_bytes - bytes) return (hk_profile_pages){NULL, 0, NULL};
    hk_profile_pages pages = pages_new(k->ctx, k->apart, units);
    if (pages.at) add_bytes(k, &pages, bytes);
    return pages;
}

static void give_table(hk_profile *k, hk_profile_pages pages)
{
    const size_t bytes = pages.bytes + 2 * HK_BESIDE;
    k->bytes -= bytes;
    if (!pages.slab) k->apart_bytes -= bytes;
    pages_give(k->ctx, &pages);
}

static void *bump(hk_profile_area *room, size_t n)
{
    if ((size_t)(room->end - room->at) < n) return NULL;
    void *p = room->at;
    room->at += n;
    return p;
}

/* Where marks and values are. */
static hk_profile_area *room_beside(hk_profile *k)
{
    return k->counted ? &k->aside : &k->room;
}

static void begin_table(hk_profile *k)
{
    k->room = (hk_profile_area){(char *)k + hk_align_up(sizeof *k, 16), (char *)k + room_in(FIRST_UNITS)};
    k->aside = (hk_profile_area){NULL, NULL};
    hk_buckets *both[] = {&k->stacks, &k->samples};
    for (unsigned i = 0; i < 2; i++) {
        *both[i] =
            (hk_buckets){bump(&k->room, FIRST_BUCKETS * sizeof(void *)), FIRST_BUCKETS, {NULL, 0, NULL}};
        memset(both[i]->at, 0, FIRST_BUCKETS * sizeof(void *));
    }
}

/* Windows begin by the clock each so many nanoseconds. */
static void set_windows(hk_profile *k, uint64_t window_ns)
{
    k->started_ns = k->now_ns = hk_profile_clock(k);
    k->first_window_ns = k->window_ns = window_ns;
    k->window_due_ns = window_ns ? k->started_ns + window_ns : UINT64_MAX;
}

static void set_profile(hk_profile *k, const hak_profile_options *o)
{
    k->exact = o->mode == HAK_PROFILE_EXACT;
    /* Threads of a shared context, which has no counted profile, read it without the lock. */
    if (k->counted != (o->mode == HAK_PROFILE_COUNTED)) k->counted = !k->counted;
    k->mean = o->mean;
    k->depth = (uint8_t)o->depth;
    k->table_bytes = o->table_bytes;
    k->frames = o->frames;
    k->resident = o->resident;
    k->gone = o->gone;
    k->sample_made = o->sample_made;
    k->sample_gone = o->sample_gone;
    k->frames_alone = o->frames_alone;
    k->one_by_one = o->one_by_one;
    k->apart = o->apart;
    k->bounded_label = o->bounded_label;
    k->user = o->user;
    k->random = o->seed;
    set_windows(k, o->window_ns);
}

hk_profile *hk_profile_new(hak_ctx *ctx, const hak_profile_options *o, hk_lock *memory,
                           const hk_counter *live, const hak_quota *heaps)
{
    hk_profile_pages pages = pages_new(ctx, o->apart, FIRST_UNITS);
    if (!pages.at) return NULL;
    hk_profile *k = (hk_profile *)(void *)pages.at;
    memset(k, 0, sizeof *k);
    k->group.pages = pages;
    add_bytes(k, &pages, FIRST_UNITS * HK_UNIT);
    k->ctx = ctx;
    k->memory = memory;
    k->live = live;
    k->heaps = heaps;
    set_profile(k, o);
    begin_table(k);
    return k;
}

/* All units that are watched. */
static void unwatch_all(hk_profile *k)
{
    for (size_t i = 0; i < k->samples.count; i++)
        for (hk_sample *s = k->samples.at[i]; s; s = s->next)
            hk_unit_watch(k->ctx, (void *)s->p, false);
    if (!k->exact || k->memory) return;
    hk_unit_watch(k->ctx, k->ctx, false);
    HK_EACH_OWNED(k->ctx, s)
    {
        for (size_t i = 0; i < s->units; i++)
            hk_unit_watch(k->ctx, hk_slab_address(k->ctx->space, s) + i * HK_UNIT, false);
    }
}

/* Gives away all pages but the first ones. */
static void give_pages(hk_profile *k, void (*give)(hk_profile *k, hk_profile_pages pages))
{
    for (hk_profile_group *g = k->groups, *following; g; g = following) {
        following = g->next;
        give(k, g->pages);
    }
    if (k->stacks.pages.at) give(k, k->stacks.pages);
    if (k->samples.pages.at) give(k, k->samples.pages);
}

static void give_all(hk_profile *k)
{
    if (k->counted && k->gone) k->gone(k->user);
    give_pages(k, give_table);
}

void hk_profile_clear(hk_profile *k, const hak_profile_options *o)
{
    unwatch_all(k);
    give_all(k);
    k->groups = NULL;
    k->spare = NULL;
    k->marks = k->spare_marks = NULL;
    k->spare_values = NULL;
    k->spare_value_count = k->value_bytes = 0;
    k->oldest = NULL;
    k->youngest = NULL;
    k->stack_count = k->sample_count = 0;
    k->drawn = 0;
    k->dropped_stacks = k->dropped_samples = 0;
    k->dropped_bytes = 0;
    k->live_bytes = k->peak = 0;
    k->peak_seq = 0;
    k->tally = (hak_profile_tally){0};
    if (o) set_profile(k, o);
    else set_windows(k, k->first_window_ns);
    begin_table(k);
}

void hk_profile_end(hk_profile *k)
{
    unwatch_all(k);
    give_all(k);
    const hk_profile_pages first = k->group.pages;
    pages_give(k->ctx, &first);
}

/* Units go with their context. */
static void forget(hk_profile *k, hk_profile_pages pages)
{
    if (!pages.slab) hk_apart_give(k->ctx->space, pages.at);
}

void hk_profile_forget(hk_profile *k)
{
    give_pages(k, forget);
    forget(k, k->group.pages);
}

/* ---- Room ----------------------------------------------------------------------------------------- */

/* What lies behind the last stack of a group, and says where the next one is, has the room of one without frames. */
static size_t stack_size(const hk_profile *k, unsigned depth)
{
    if (k->counted) return sizeof(hk_tallied) + depth * sizeof(uintptr_t);
    return hk_align_up(sizeof(hk_sampled) + depth * sizeof(uintptr_t), 16);
}

static bool has_room(const hk_profile *k, unsigned depth)
{
    size_t more = k->counted ? sizeof(hk_stack) : sizeof(hk_sample);
    return (size_t)(k->room.end - k->room.at) >= stack_size(k, depth) + more;
}

static bool crowded(const hk_profile *k, const hk_buckets *b, size_t entries)
{
    return entries > (k->counted ? FULL_COUNTED : FULL) * b->count && b->count < BUCKETS_MOST;
}

/* Stacks of a counted profile go on there. */
static void go_on(hk_profile *k, const hk_profile_area *room)
{
    if (k->oldest)
        *(hk_stack *)(void *)k->room.at =
            (hk_stack){.next = (hk_stack *)(void *)room->at, .depth = HK_STACK_GOES_ON};
}

/* Apart, each group is a call of the system: the larger the table, the larger the groups. */
static size_t units_wanted(const hk_profile *k)
{
    size_t wanted = MORE_UNITS;
    if (k->apart) wanted = hk_min(hk_max(k->bytes >> (HK_UNIT_SHIFT + 5), FIRST_UNITS), HK_CHUNK_UNITS);
    return hk_min(wanted, (k->table_bytes - k->bytes) >> HK_UNIT_SHIFT);
}

/* The pages are for what `room` is for. */
static void add_group(hk_profile *k, hk_profile_area *room, size_t units)
{
    hk_profile_pages pages = {NULL, 0, NULL};
    if (k->bytes <= k->table_bytes) pages = take(k, hk_max(units, units_wanted(k)));
    if (!pages.at) pages = take(k, units);
    if (!pages.at) return;
    hk_profile_group *g = (hk_profile_group *)(void *)pages.at;
    *g = (hk_profile_group){k->groups, pages};
    k->groups = g;
    const hk_profile_area wider = {pages.at + hk_align_up(sizeof *g, 16), pages.at + pages.bytes};
    if (k->counted && room == &k->room) go_on(k, &wider);
    *room = wider;
}

static size_t spread(uint64_t x, const hk_buckets *b)
{
    return (size_t)((x * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - hk_log2(b->count)));
}

/* Samples of a unit share a bucket, so that the last one is known; exact, where units stay watched, they are
 * far too many. */
static size_t sample_bucket(const hk_profile *k, uintptr_t p)
{
    return spread(k->exact ? p >> 3 : p >> HK_UNIT_SHIFT, &k->samples);
}

/* Twice is enough; four times are fewer moves. false = no memory. */
static bool widen(hk_profile *k, hk_buckets *b)
{
    size_t count = hk_min(b->count * (k->counted ? 2 : 4), BUCKETS_MOST);
    hk_profile_pages pages = take(k, hk_meta_units_for(count * sizeof(void *)));
    if (!pages.at) return false;
    hk_buckets old = *b;
    *b = (hk_buckets){(void **)(void *)pages.at, count, pages};
    memset(b->at, 0, count * sizeof(void *));
    for (size_t i = 0; i < old.count; i++) {
        if (b == &k->stacks) {
            for (hk_stack *at = old.at[i], *following; at; at = following) {
                following = at->next;
                size_t to = spread(at->hash, b);
                at->next = b->at[to];
                b->at[to] = at;
            }
        } else {
            for (hk_sample *at = old.at[i], *following; at; at = following) {
                following = at->next;
                size_t to = sample_bucket(k, at->p);
                at->next = b->at[to];
                b->at[to] = at;
            }
        }
    }
    if (old.pages.at) give_table(k, old.pages);
    return true;
}

void hk_profile_prepare(hk_profile *k, unsigned depth)
{
    hk_profile_lock(k);
    bool room = has_room(k, depth), stacks = crowded(k, &k->stacks, k->stack_count),
         samples = crowded(k, &k->samples, k->sample_count);
    if (HK_LIKELY(room && !stacks && !samples)) return;
    hk_profile_unlock(k);
    if (k->memory) hk_lock_take(k->memory);
    hk_profile_lock(k);
    if (!has_room(k, depth)) add_group(k, &k->room, 1);
    if (crowded(k, &k->stacks, k->stack_count)) widen(k, &k->stacks);
    if (crowded(k, &k->samples, k->sample_count)) widen(k, &k->samples);
    if (k->memory) hk_lock_drop(k->memory);
}

void *hk_profile_room(hk_profile *k, size_t n)
{
    n = hk_align_up(n, 16);
    size_t units = hk_meta_units_for(n + hk_align_up(sizeof(hk_profile_group), 16));
    if (k->memory) hk_lock_take(k->memory);
    hk_profile_lock(k);
    hk_profile_area *room = room_beside(k);
    if ((size_t)(room->end - room->at) < n && units <= HK_CHUNK_UNITS) add_group(k, room, units);
    if (k->memory) hk_lock_drop(k->memory);
    return bump(room, n);
}

bool hk_profile_values(hk_profile *k, size_t n)
{
    if (k->memory) hk_lock_take(k->memory);
    hk_profile_lock(k);
    hk_profile_area *room = room_beside(k);
    while (k->spare_value_count < n) {
        hk_value *v = bump(room, sizeof *v);
        if (!v) {
            size_t before = k->bytes;
            add_group(k, room, 1);
            if (k->bytes == before) break;
            continue;
        }
        v->before = k->spare_values;
        k->spare_values = v;
        k->spare_value_count++;
        k->value_bytes += sizeof *v;
    }
    if (k->memory) hk_lock_drop(k->memory);
    return k->spare_value_count >= n;
}

/* ---- Stacks --------------------------------------------------------------------------------------- */

static uint32_t hash_of(const uintptr_t *frames, unsigned depth, hak_site site, hak_label label)
{
    uint64_t h = site * UINT64_C(0x9E3779B97F4A7C15) + label;
    for (unsigned i = 0; i < depth; i++)
        h = (h ^ (h >> 29) ^ frames[i]) * UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(h >> 32);
}

/* Most stacks are of one frame or two. */
HK_INLINE bool same_frames(const uintptr_t *a, const uintptr_t *b, unsigned depth)
{
    unsigned i = 0;
    while (i < depth && a[i] == b[i])
        i++;
    return i == depth;
}

static hk_stack *tallied_new(hk_profile *k, const uintptr_t *frames, unsigned depth)
{
    hk_tallied *t = has_room(k, depth) ? bump(&k->room, stack_size(k, depth)) : NULL;
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    t->counts.id = (uint32_t)++k->stack_count;
    t->counts.peak_seen = (uint32_t)k->tally.peak_seen;
    memcpy(t->frames, frames, depth * sizeof *frames);
    if (!k->oldest) k->oldest = &t->stack;
    return &t->stack;
}

static hk_stack *sampled_new(hk_profile *k, const uintptr_t *frames, unsigned depth, hak_site site)
{
    hk_sampled *s = bump(&k->room, stack_size(k, depth));
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->site = site;
    s->id = (uint32_t)++k->stack_count;
    s->sums.peak_seen = k->peak_seq;
    memcpy(s->frames, frames, depth * sizeof *frames);
    if (k->youngest) __atomic_store_n(&k->youngest->younger, s, __ATOMIC_RELEASE);
    else __atomic_store_n(&k->oldest, &s->stack, __ATOMIC_RELEASE);
    k->youngest = s;
    return &s->stack;
}

hk_stack *hk_profile_stack_of(hk_profile *k, const uintptr_t *frames, unsigned depth, hak_site site,
                              hak_label label)
{
    uint32_t hash = hash_of(frames, depth, site, label);
    void **bucket = &k->stacks.at[spread(hash, &k->stacks)];
    for (hk_stack *s = *bucket; s; s = s->next)
        if (s->hash == hash && s->label == label && s->depth == depth &&
            same_frames(hk_stack_frames(k, s), frames, depth) &&
            (k->counted || ((const hk_sampled *)s)->site == site))
            return s;
    hk_stack *s = k->counted ? tallied_new(k, frames, depth) : sampled_new(k, frames, depth, site);
    if (!s) return NULL;
    s->hash = hash;
    s->label = label;
    s->depth = (uint16_t)depth;
    s->next = *bucket;
    *bucket = s;
    return s;
}

/* ---- Samples -------------------------------------------------------------------------------------- */

hk_sample *hk_profile_sample_new(hk_profile *k, uintptr_t p, hk_sample **link)
{
    hk_sample *s = k->spare;
    if (s) k->spare = s->next;
    else s = bump(&k->room, sizeof *s);
    if (!s) return NULL;
    s->p = p;
    s->next = NULL;
    *link = s;
    k->sample_count++;
    return s;
}

hk_sample **hk_profile_find(const hk_profile *k, uintptr_t p)
{
    hk_sample **link = (hk_sample **)&k->samples.at[sample_bucket(k, p)];
    while (*link && (*link)->p != p)
        link = &(*link)->next;
    return link;
}

/* The low bit tells that the block is on its way: no block lies there, and the record stays in its bucket. */
enum { MOVING = 1 };

hk_sample *hk_profile_sample_leave(hk_profile *k, const void *p)
{
    hk_profile_lock(k);
    hk_sample *s = *hk_profile_find(k, (uintptr_t)p);
    if (s) s->p |= MOVING;
    hk_profile_unlock(k);
    return s;
}

void hk_profile_sample_arrive(hk_profile *k, hk_sample *s, const void *p, const void *q)
{
    uintptr_t from = (uintptr_t)p | MOVING;
    hk_profile_lock(k);
    hk_sample **link = (hk_sample **)&k->samples.at[sample_bucket(k, from)];
    while (*link && *link != s)
        link = &(*link)->next;
    /* The profile may have begun anew. */
    if (*link && s->p == from) {
        *link = s->next;
        s->p = (uintptr_t)q;
        link = hk_profile_find(k, s->p);
        s->next = *link;
        *link = s;
    }
    hk_profile_unlock(k);
}

void hk_profile_sample_drop(hk_profile *k, hk_sample **link)
{
    hk_sample *s = *link;
    uintptr_t p = s->p;
    *link = s->next;
    s->next = k->spare;
    k->spare = s;
    k->sample_count--;
    if (k->exact) return;
    for (const hk_sample *other = k->samples.at[sample_bucket(k, p)]; other; other = other->next)
        if (other->p >> HK_UNIT_SHIFT == p >> HK_UNIT_SHIFT) return;
    hk_unit_watch(k->ctx, (void *)p, false);
}
