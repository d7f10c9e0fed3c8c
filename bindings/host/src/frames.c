/* Tables of frames: function, file and line under a number. */
#include <hakmem/report.h>

#include "callsite/texts.h"
#include "callsite/walk.h"

#include <pthread.h>

enum { FIRST_ROOM = 1024, DEFAULT_MOST = 65536, MOST = 1 << 24 };

typedef struct entry {
    const char *function, *file; /* NULL = not known */
    int line;
    uint32_t hash;
} entry;

struct hak_frames {
    pthread_mutex_t lock;
    size_t most, count, room, lost;
    entry *entries;  /* by number */
    uint32_t *slots; /* a hash table of numbers + 1, twice as many as there is room for */
    hkc_texts *texts;
};

hak_frames *hak_frames_new(size_t most)
{
    if (most > MOST) return NULL;
    hak_frames *f = hkc_pages(sizeof *f);
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->most = most ? most : DEFAULT_MOST;
    return f;
}

static void free_tables(entry *entries, uint32_t *slots, size_t room)
{
    hkc_pages_give(entries, room * sizeof *entries);
    hkc_pages_give(slots, 2 * room * sizeof *slots);
}

void hak_frames_delete(hak_frames *f)
{
    if (!f) return;
    free_tables(f->entries, f->slots, f->room);
    hkc_texts_close(&f->texts);
    pthread_mutex_destroy(&f->lock);
    hkc_pages_give(f, sizeof *f);
}

/* ---- Adding -------------------------------------------------------------------------------------- */

/* FNV-1a, of what is kept of the text. */
static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (size_t i = 0; text && text[i] && i < HKC_TEXTS_MOST - 1; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return (hash ^ (text ? 256u : 257u)) * 16777619u;
}

static bool same(const char *kept, const char *text)
{
    if (!kept || !text) return !kept && !text;
    return strncmp(kept, text, HKC_TEXTS_MOST - 1) == 0;
}

/* The slot of what is looked for, or the free one where it belongs. There is a free one. */
static uint32_t *slot_of(const hak_frames *f, const entry *e)
{
    const size_t mask = 2 * f->room - 1;
    for (size_t i = e->hash & mask;; i = (i + 1) & mask) {
        if (!f->slots[i]) return &f->slots[i];
        const entry *kept = &f->entries[f->slots[i] - 1];
        if (kept->hash == e->hash && kept->line == e->line && same(kept->function, e->function) &&
            same(kept->file, e->file))
            return &f->slots[i];
    }
}

static bool grow(hak_frames *f)
{
    hak_frames larger = {.count = f->count, .room = f->room ? 2 * f->room : FIRST_ROOM};
    larger.entries = hkc_pages(larger.room * sizeof *larger.entries);
    larger.slots = hkc_pages(2 * larger.room * sizeof *larger.slots);
    if (!larger.entries || !larger.slots) {
        free_tables(larger.entries, larger.slots, larger.room);
        return false;
    }
    for (size_t i = 0; i < f->count; i++) {
        *slot_of(&larger, &f->entries[i]) = (uint32_t)i + 1;
        larger.entries[i] = f->entries[i];
    }
    free_tables(f->entries, f->slots, f->room);
    f->entries = larger.entries;
    f->slots = larger.slots;
    f->room = larger.room;
    return true;
}

/* The number of what is there by now; 0 = no room. */
static size_t add(hak_frames *f, entry *e)
{
    uint32_t *slot = f->room ? slot_of(f, e) : NULL;
    if (slot && *slot) return *slot;
    if (f->count == f->most) return 0;
    if (f->count == f->room) {
        if (!grow(f)) return 0;
        slot = slot_of(f, e);
    }
    const char *function = e->function, *file = e->file;
    if (function && !(e->function = hkc_texts_keep(&f->texts, function))) return 0;
    if (file && !(e->file = hkc_texts_keep(&f->texts, file))) return 0;
    f->entries[f->count] = *e;
    *slot = (uint32_t)++f->count;
    return f->count;
}

uintptr_t hak_frames_add(hak_frames *f, const char *function, const char *file, int line)
{
    entry e = {.function = function, .file = file, .line = line > 0 ? line : 0};
    e.hash = hash_text(hash_text(2166136261u ^ (uint32_t)e.line * 2654435761u, function), file);
    pthread_mutex_lock(&f->lock);
    const size_t number = add(f, &e);
    f->lost += number == 0;
    pthread_mutex_unlock(&f->lock);
    return HAK_FRAME_LOST | number;
}

/* ---- Finding ------------------------------------------------------------------------------------- */

bool hak_frames_find(const hak_frames *frames, uintptr_t frame, hak_report_frame *out)
{
    hak_frames *f = (hak_frames *)(uintptr_t)frames; /* for its lock alone */
    const uintptr_t number = frame & ~HAK_FRAME_LOST;
    if (!(frame & HAK_FRAME_LOST)) return false;
    if (number == 0) {
        *out = (hak_report_frame){.function = "(no room for the frame)"};
        return true;
    }
    pthread_mutex_lock(&f->lock);
    const bool found = number <= f->count;
    if (found) {
        const entry *e = &f->entries[number - 1];
        *out = (hak_report_frame){.function = e->function, .file = e->file, .line = e->line};
    }
    pthread_mutex_unlock(&f->lock);
    return found;
}

size_t hak_frames_count(const hak_frames *frames, size_t *lost)
{
    hak_frames *f = (hak_frames *)(uintptr_t)frames;
    pthread_mutex_lock(&f->lock);
    const size_t count = f->count;
    if (lost) *lost = f->lost;
    pthread_mutex_unlock(&f->lock);
    return count;
}

/* ---- Machine code -------------------------------------------------------------------------------- */

size_t hak_native_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    (void)user, (void)ctx;
#ifdef HKC_CFI_WALK
    static hkc_walk walk;
    return hkc_walk_from(&walk, site, frames, room);
#else
    if (site == 0 || room == 0) return 0;
    frames[0] = site;
    return 1;
#endif
}
