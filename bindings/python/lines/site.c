#include "lines/site.h"

#include "base/map.h"
#include "heap/heap.h"
#include "heap/labels.h"
#include "lines/kept.h"

#include <pthread.h>

enum { SITES_MAX = 1 << HKP_NUMBER_BITS, TEXT_BYTES = 32 << 20, NAME_MAX_BYTES = 1024, CODES = 256 };

typedef struct site {
    uint32_t text; /* where its file and function stand in texts */
    int line;
} site;

/* What is known of a code object that lives. */
typedef struct code {
    const char *_Atomic object;
    uint32_t text;   /* as of its sites; 0 = there was no room */
    uint32_t number; /* of the line that was asked for before; 0 = none */
    int line;
    hkp_line_walk walk;
} code;

/* All below: written with the mutex held; what is below site_count and text_size is never changed. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static site *sites; /* by number */
static char *texts;
static size_t text_size;
static _Atomic size_t site_count;
static code codes[CODES];
static bool marked; /* blocks end with their marks */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
}

static uint64_t hash_of(const site *s)
{
    uint64_t hash = ((uint64_t)s->text << 32 | (uint32_t)s->line) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t site_hash(uint32_t number)
{
    return hash_of(&sites[number]);
}

static bool site_is(uint32_t number, const void *key)
{
    return memcmp(&sites[number], key, sizeof(site)) == 0;
}

static hkp_map site_numbers = {.hash = site_hash, .is = site_is};

/* A name and its end, behind where the text that it belongs to stands: a function has that of its file, a
 * file has none. */
typedef struct text {
    const char *bytes;
    size_t size;
} text;

static uint32_t owner_of(uint32_t at)
{
    uint32_t owner;
    memcpy(&owner, texts + at, sizeof owner);
    return owner;
}

static const char *name_of(uint32_t at)
{
    return texts + at + sizeof at;
}

static uint64_t text_hash(uint32_t at)
{
    return hkp_hash(texts + at, sizeof at + strlen(name_of(at)) + 1, 0);
}

static bool text_is(uint32_t at, const void *key)
{
    const text *is = key;
    return is->size <= text_size - at && memcmp(texts + at, is->bytes, is->size) == 0;
}

static hkp_map text_places = {.hash = text_hash, .is = text_is};

/* Where the text of a name stands; 0 when there is no room. There is room for the owner before the name. */
static uint32_t text_of(uint32_t owner, char *name)
{
    char *bytes = memcpy(name - sizeof owner, &owner, sizeof owner);
    text key = {bytes, sizeof owner + strlen(name) + 1};
    uint64_t hash = hkp_hash(key.bytes, key.size, 0);
    uint32_t known = hkp_map_find(&text_places, hash, &key), at = (uint32_t)text_size;
    if (known) return known;
    if (key.size > TEXT_BYTES - text_size) return 0;
    memcpy(texts + at, key.bytes, key.size);
    if (!hkp_map_add(&text_places, at)) return 0;
    text_size += key.size;
    return at;
}

static code *slot_of_code(const void *object)
{
    return &codes[((uintptr_t)object >> 4 ^ (uintptr_t)object >> 12) % CODES];
}

/* Who puts a code object there holds the GIL of its interpreter, as who comes here does. */
static void code_dies(const void *object)
{
    const char *expected = object;
    atomic_compare_exchange_strong(&slot_of_code(object)->object, &expected, NULL);
    hkp_places_forget(object);
}

static code *code_of(const hkp_place *place)
{
    code *known = slot_of_code(place->code);
    if (known->object == place->code) return known;
    char buffer[sizeof(uint32_t) + NAME_MAX_BYTES], *file = buffer + sizeof(uint32_t);
    hkp_place_name(place, file, NAME_MAX_BYTES);
    char *function = file + strlen(file) + 1;
    uint32_t of_file = text_of(0, file);
    known->object = NULL;
    known->text = of_file != 0 ? text_of(of_file, function) : 0;
    known->number = 0;
    known->walk = (hkp_line_walk){0};
    known->object = place->code;
    return known;
}

static uint32_t find_number(uint32_t name, int line)
{
    site key = {name, line};
    uint32_t known = hkp_map_find(&site_numbers, hash_of(&key), &key);
    if (known) return known;
    size_t count = atomic_load_explicit(&site_count, memory_order_relaxed);
    if (count == SITES_MAX || name == 0) return 0;
    sites[count] = key;
    if (!hkp_map_add(&site_numbers, (uint32_t)count)) return 0;
    atomic_store_explicit(&site_count, count + 1, memory_order_release);
    return (uint32_t)count;
}

/* The number of the place's line in its file and function; 0 = too many of them. */
static uint32_t number_of(const hkp_place *place)
{
    pthread_mutex_lock(&mutex);
    code *in = code_of(place);
    int line = hkp_place_line(place, &in->walk);
    if (in->number == 0 || in->line != line) {
        in->number = find_number(in->text, line);
        in->line = line;
    }
    uint32_t number = in->number;
    pthread_mutex_unlock(&mutex);
    return number;
}

uint32_t hkp_site_named(const char *name)
{
    char buffer[2 * sizeof(uint32_t) + NAME_MAX_BYTES], *file = buffer + sizeof(uint32_t);
    char *function = file + sizeof(uint32_t);
    if (!sites || strlen(name) >= NAME_MAX_BYTES) return 0;
    pthread_mutex_lock(&mutex);
    file[0] = '\0';
    const uint32_t of_file = text_of(0, file);
    strcpy(function, name);
    const uint32_t number = of_file != 0 ? find_number(text_of(of_file, function), 0) : 0;
    pthread_mutex_unlock(&mutex);
    return number;
}

const char *hkp_site_numbers(void)
{
    if (sites) return NULL;
    const char *unable = hkp_frames_start(code_dies);
    if (unable) return unable;
    texts = hkp_pages(TEXT_BYTES);
    sites = hkp_pages(SITES_MAX * sizeof *sites);
    if (!texts || !sites) return "no memory for sites";
    text_size = 2 * sizeof(uint32_t); /* the names of number 0 */
    atomic_store(&site_count, 1);
    pthread_atfork(before_fork, after_fork, in_child);
    hkp_places_start(number_of);
    return NULL;
}

const char *hkp_site_start(void)
{
    const char *unable = hkp_site_numbers();
    marked = marked || !unable;
    return unable;
}

void hkp_site_mark_end(void *p, size_t n, hkp_site_mark mark)
{
    size_t size = hak_usable_size(hkp_heap(), p), more = (size - n) / 256;
    char *end = (char *)p + size - sizeof mark;
    if (more >= HKP_SITE_FAR) {
        more = HKP_SITE_FAR;
        memcpy(end - sizeof n, &n, sizeof n);
    }
    mark |= (hkp_site_mark)more << HKP_NUMBER_BITS | (hkp_site_mark)(n & 255) << HKP_SITE_SIZE_AT;
    memcpy(end, &mark, sizeof mark);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static size_t numbers(void)
{
    return atomic_load_explicit(&site_count, memory_order_acquire);
}

size_t hkp_site_numbered(void)
{
    return numbers();
}

size_t hkp_site_count(void)
{
    return marked ? numbers() : 0;
}

static uint32_t mark_of(const void *p, size_t size, size_t *asked)
{
    hkp_site_mark mark;
    const char *end = (const char *)p + size - sizeof mark;
    memcpy(&mark, end, sizeof mark);
    size_t more = mark >> HKP_NUMBER_BITS & HKP_SITE_FAR;
    size_t n = size - more * 256 - ((size - (mark >> HKP_SITE_SIZE_AT)) & 255);
    if (more == HKP_SITE_FAR && size >= sizeof n + sizeof mark) memcpy(&n, end - sizeof n, sizeof n);
    *asked = n <= size ? n : size; /* a block may be on its way */
    mark &= HKP_NUMBER_MAX;
    return mark < numbers() ? mark : 0;
}

size_t hkp_site_usable(hak_ctx *heap, const void *p)
{
    size_t size = hak_usable_size(heap, p), asked = size;
    if (hak_label_of(heap, p) != 0) mark_of(p, size, &asked); /* else it is older than lines */
    return asked;
}

static void describe(uint32_t number, hkp_site_info *info)
{
    uint32_t at = sites[number].text;
    *info = (hkp_site_info){
        .number = number, .file = name_of(owner_of(at)), .function = name_of(at), .line = sites[number].line};
}

bool hkp_site_at(uint32_t number, hkp_site_info *info)
{
    if (number >= numbers()) return false;
    describe(number, info);
    return true;
}

typedef struct sums {
    hkp_site_info *out;
    size_t count;
} sums;

static bool add_block(void *user, const hak_block *block)
{
    const sums *s = user;
    /* arenas, and what nobody labelled, have no mark */
    if (block->label == 0 || block->label == HKP_DOMAIN_LABEL(HKP_ARENA)) return true;
    size_t asked;
    uint32_t number = mark_of(block->p, block->size, &asked);
    if (number >= s->count) number = 0;
    s->out[number].asked_bytes += asked;
    s->out[number].live_bytes += block->size;
    s->out[number].live_blocks++;
    s->out[number].pinned_bytes += hak_block_pins(hkp_ctx(), block->p);
    if (hkp_kept_is(block->p, block->size)) s->out[number].reused_bytes += block->size;
    return true;
}

void hkp_site_stats(hkp_site_info *out, size_t count)
{
    size_t all = hkp_site_count();
    for (size_t i = 0; i < count && i < all; i++)
        describe((uint32_t)i, &out[i]);
    sums s = {out, count < all ? count : all};
    if (s.count > 0) hkp_visit(add_block, &s);
}

bool hkp_site_of(const void *p, hkp_site_info *info)
{
    if (hkp_site_count() == 0) return false;
    size_t size = hak_usable_size(hkp_heap(), p), asked = 0;
    uint32_t number = size != 0 ? mark_of(p, size, &asked) : 0;
    if (number == 0) return false;
    describe(number, info);
    info->live_bytes = size;
    info->live_blocks = 1;
    info->asked_bytes = asked;
    return true;
}
