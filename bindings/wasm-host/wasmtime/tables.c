/* Tables and an instance's own structure, which wasmtime keeps in malloc, within the tenant's limit. The C
 * API has no callback that grants growth, only a number of elements that no table of a store may pass: so
 * what that number allows is charged from the start. */
#include "types.h"

/* All tables of an instance may grow by this part of the limit on linear bytes. */
enum { PART = 16, PASSIVE_ELEMENT = 16 };

/* Of its own structure, an instance has this much for nothing: its memory is charged with more than it may
 * need. One without a memory is charged with LEAST altogether, as the least memory is. */
enum { FREE = 32 << 10, LEAST = 64 << 10 };

static const uint64_t MANY = UINT64_C(1) << 48; /* bytes or elements, more than there is memory for */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes when no table has grown beyond this many elements. */
static uint64_t bytes_at(const hak_wasmtime_module *m, uint64_t elements)
{
    uint64_t bytes = smaller(m->passive * PASSIVE_ELEMENT, MANY);
    for (uint32_t i = 0; i < m->table_count; i++) {
        const hkw_table *t = &m->tables[i];
        uint64_t most = smaller(elements, t->most);
        bytes = smaller(bytes + smaller(most > t->least ? most : t->least, MANY) * t->element, MANY);
    }
    return bytes;
}

/* What the tables of all parts have in common. */
typedef struct sums {
    uint64_t largest, growing; /* elements at first; bytes of an element of each that may grow */
    uint64_t own, memories;
    bool grows;
} sums;

static void add(sums *all, const hak_wasmtime_module *m)
{
    for (uint32_t n = 0; n < m->table_count; n++) {
        const hkw_table *t = &m->tables[n];
        if (t->least > all->largest) all->largest = smaller(t->least, MANY);
        if (t->most > t->least) all->growing += t->element;
    }
    /* Modules that were read to their ends, and have no instruction that grows a table, need no room. */
    all->grows |= m->refused || m->tables_grow;
    all->own += m->own;
    all->memories += m->memories;
}

bool hkw_tables_begin(hak_wasmtime_instance *i)
{
    sums all = {0, 0, 0, 0, false};
    for (const hak_wasmtime_instance *part = i; part; part = part->before)
        add(&all, part->module);
    const uint64_t limit = hak_wasm_linear_limit(i->tenant), growing = all.growing;
    const bool grows = limit && growing && all.grows;
    const uint64_t elements = all.largest + (grows ? limit / PART / growing : 0);
    const int64_t most = limit && growing ? (int64_t)elements : -1;
    wasmtime_store_limiter(i->store, -1, most, -1, -1, HAK_WASMTIME_MEMORIES);
    uint64_t bytes = all.own > FREE ? all.own - FREE : 0;
    for (const hak_wasmtime_instance *part = i; part; part = part->before)
        bytes = smaller(bytes + bytes_at(part->module, grows ? elements : 0), MANY);
    if (all.memories == 0 && bytes < LEAST) bytes = LEAST;
    if (hak_wasm_charge(i->tenant, (size_t)bytes) != 0) return false;
    i->charged = (size_t)bytes;
    return true;
}

void hkw_tables_end(hak_wasmtime_instance *i)
{
    hak_wasm_uncharge(i->tenant, i->charged);
}

const char *hkw_tables_refused(const hak_wasmtime_instance *i)
{
    bool tables = false, small = true;
    for (; i; i = i->before) {
        tables |= i->module->table_count > 0;
        small &= i->module->own <= FREE;
    }
    return tables && small
               ? "hakmem: the tables do not fit into the tenant's limit"
               : "hakmem: the instance's globals and functions do not fit into the tenant's limit";
}
