#include "space/extent.h"

#include "base/classes.h"

/* Address space for a unit and its entries in the arrays of lay_out(): a first guess of how many fit. */
#define PER_UNIT_IN_BUFFER (HK_UNIT + 32 + 4 + HK_UNIT_BITS / 8)
#define PER_UNIT (PER_UNIT_IN_BUFFER + 4005)

/* Arrays begin at a multiple of this, so that each can be opened alone: large extents are opened piece by
 * piece, by the pages of any system. */
static size_t page_for(size_t units, size_t align)
{
    return align < HK_CHUNK ? 1 : units >> (30 - HK_UNIT_SHIFT) ? (size_t)64 << 10 : HK_PAGE;
}

/* Bytes of one label area: whole pages where they can be committed one by one. */
static size_t label_area(size_t units, size_t align, unsigned area)
{
    return hk_align_up(((units << HK_UNIT_SHIFT) >> hk_area_shift[area]) + 1, page_for(units, align));
}

/* The head and the first units lie close together, so that the first allocation touches few page tables. */
hk_layout hk_lay_out(size_t units, size_t align, bool first, bool alone)
{
    hk_layout l;
    size_t chunks = (units + HK_CHUNK_UNITS - 1) / HK_CHUNK_UNITS, end = 0;
    size_t slab_bytes = units * sizeof(hk_slab), chunk_bytes = chunks * sizeof(hk_chunk);
    /* A big block may end where the extent begins; units of a buffer may be before those of label bytes. */
    end = align >= HK_CHUNK ? HK_PAGE : HK_BESIDE;
    l.labels = end;
    for (unsigned a = 0; a < HK_AREAS; a++)
        end += label_area(units, align, a);
    l.label_units = align >= HK_CHUNK ? 0 : (end + HK_UNIT - 1) >> HK_UNIT_SHIFT;
    end = l.label_units ? 0 : hk_align_up(end, HK_PAGE);
    l.bits = end + hk_align_up(chunk_bytes > 1024 ? chunk_bytes - 1024 : 0, HK_PAGE) + 1024;
    l.chunks = l.bits - sizeof(hk_chunk); /* of chunk 1 */
    end = hk_align_up(l.bits + units * (HK_UNIT_BITS / 8), HK_PAGE);
    l.head = end + hk_align_up(slab_bytes > 1024 ? slab_bytes - 1024 : 0, HK_PAGE) + 1024;
    l.slabs = l.head - sizeof(hk_slab);
    l.map = l.slabs + HK_RECORD_TO_MAP;
    end = hk_align_up(l.map + units * sizeof(uint32_t), 64);
    if (first && !alone) end = hk_align_up(end, hk_max(HK_PAGE, page_for(units, align)));
    l.more = end;
    if (first && !alone) end += hk_align_up((HK_EXTENTS - 1) * sizeof(hk_extent), HK_PAGE);
    l.units = end + HK_BESIDE;
    return l;
}

_Static_assert(sizeof(hk_slab) == 32, "slab records are 32 bytes");
_Static_assert(sizeof(struct hak_space) <= 1024, "the space fits between slab records and map");

/* Units that fit a reservation whose units begin at an address aligned to `align`. */
size_t hk_units_for(char *p, size_t n, size_t align, bool first, bool alone)
{
    size_t units = n / (align >= HK_CHUNK ? PER_UNIT : PER_UNIT_IN_BUFFER);
    if (align >= HK_CHUNK) units &= ~(size_t)(HK_CHUNK_UNITS - 1);
    for (; units > 0; units -= align >= HK_CHUNK ? HK_CHUNK_UNITS : 1) {
        uintptr_t base = hk_align_up((uintptr_t)p + hk_lay_out(units, align, first, alone).units, align);
        if (base + (units << HK_UNIT_SHIFT) <= (uintptr_t)p + n) break;
        if (units < HK_CHUNK_UNITS && align >= HK_CHUNK) return 0;
    }
    return units;
}

void hk_extent_init(hk_extent *e, char *p, size_t n, size_t units, const hk_layout *l, size_t align)
{
    e->base = hk_align_up((uintptr_t)p + l->units, align);
    e->units = (uint32_t)units;
    e->map = (uint32_t *)(void *)(p + l->map);
    e->slabs = (hk_slab *)(void *)(p + l->slabs);
    e->bits = (uint64_t *)(void *)(p + l->bits);
    e->chunks = (hk_chunk *)(void *)(p + l->chunks);
    e->label_first = (uint32_t)(units - l->label_units);
    char *labels = l->label_units ? (char *)e->base + ((size_t)e->label_first << HK_UNIT_SHIFT) + l->labels
                                  : p + l->labels;
    for (unsigned a = 0; a < HK_AREAS; a++) {
        /* Biased through integers: the pointer itself lies outside any object until it is indexed. */
        e->labels[a] = (uint8_t *)((uintptr_t)labels - (e->base >> hk_area_shift[a]));
        labels += label_area(units, align, a);
    }
    e->reserved = p;
    e->reserved_size = n;
    e->chunks_used = 0;
    e->chunks_most = (uint32_t)((units + HK_CHUNK_UNITS - 1) / HK_CHUNK_UNITS);
    e->reach = (uint32_t)units;
}

hk_extent *hk_extent_of_id(const hak_space *s, hk_unit_id id)
{
    for (uint32_t i = 0, n = atomic_load_explicit(&s->extents, memory_order_acquire); i < n; i++) {
        hk_extent *e = hk_extent_number(s, i);
        if (id - e->first < e->units) return e;
    }
    return NULL;
}

hk_extent *hk_extent_of_slab_above(const hak_space *s, const hk_slab *slab)
{
    for (uint32_t i = 0, n = atomic_load_explicit(&s->extents, memory_order_acquire); i < n; i++) {
        hk_extent *e = hk_extent_number(s, i);
        if (hk_extent_unit(e, slab) < e->units) return e;
    }
    return NULL;
}

hk_extent *hk_extent_of(const hak_space *s, const void *p)
{
    for (uint32_t i = 0, n = atomic_load_explicit(&s->extents, memory_order_acquire); i < n; i++) {
        hk_extent *e = hk_extent_number(s, i);
        if (((uintptr_t)p - e->base) >> HK_UNIT_SHIFT < hk_extent_reach(e)) return e;
    }
    return NULL;
}

unsigned hk_units_a_page(unsigned area)
{
    return area == 0 ? 4 : area >= 4 ? 32 : 2u << area;
}

void hk_chunk_add_paged(hk_mask *m, const hk_chunk *chunk, unsigned area)
{
    unsigned n = hk_units_a_page(area);
    for (uint32_t pages = chunk->label_pages[area]; pages; pages &= pages - 1) {
        hk_mask more = hk_mask_of((unsigned)__builtin_ctz(pages) * n, n);
        m->w[0] |= more.w[0];
        m->w[1] |= more.w[1];
    }
}

unsigned hk_chunk_page_unused(const hk_chunk *chunk, unsigned area)
{
    unsigned n = hk_units_a_page(area);
    hk_mask others = {{0, 0}};
    for (unsigned a = 0; a < HK_PAGED_AREAS; a++)
        hk_chunk_add_paged(&others, chunk, a);
    for (unsigned i = 0; i < HK_CHUNK_UNITS; i += n) {
        hk_mask m = hk_mask_of(i, n);
        uint64_t rest[2] = {m.w[0] & ~(chunk->free[0] & ~chunk->dirty[0] & ~others.w[0]),
                            m.w[1] & ~(chunk->free[1] & ~chunk->dirty[1] & ~others.w[1])};
        if (!(rest[0] | rest[1])) return i;
    }
    return HK_CHUNK_UNITS;
}
