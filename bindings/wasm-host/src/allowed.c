/* Limits on modules, by a pass over the binary that neither allocates nor compiles; on steps of a call. */
#include "binary.h"
#include "tenant.h"

#include <stdio.h>
#include <string.h>

enum {
    SECTION_TYPE = 1,
    SECTION_IMPORT = 2,
    SECTION_FUNCTION = 3,
    SECTION_GLOBAL = 6,
    SECTION_EXPORT = 7,
    SECTION_ELEMENT = 9,
    SECTION_CODE = 10,
    SECTION_DATA = 11
};

/* ---- What a binary has --------------------------------------------------------------------------- */

static void raise_to(uint64_t *most, uint64_t n)
{
    if (n > *most) *most = n;
}

static void add(uint64_t *sum, uint64_t n)
{
    *sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

/* A number of things that take a byte each at least. */
static uint64_t read_count(hkw_reader *r)
{
    const uint64_t n = hkw_read_leb(r);
    if (n > (uint64_t)(r->end - r->p)) r->bad = true;
    return r->bad ? 0 : n;
}

static uint64_t skip_types(hkw_reader *r, bool fields)
{
    const uint64_t all = read_count(r);
    for (uint64_t n = all; n > 0 && !r->bad; n--) {
        hkw_read_type(r);
        if (fields) hkw_read_byte(r); /* whether it is mutable */
    }
    return all;
}

static void read_type(hkw_reader *r, uint64_t *numbers)
{
    uint8_t form = hkw_read_byte(r);
    add(&numbers[HKW_MODULE_TYPES], 1);
    if (form == 0x50 || form == 0x4f) { /* sub, sub final */
        for (uint64_t n = read_count(r); n > 0 && !r->bad; n--)
            hkw_read_leb(r);
        form = hkw_read_byte(r);
    }
    if (form == 0x60) { /* func */
        uint64_t arity = skip_types(r, false);
        add(&arity, skip_types(r, false));
        raise_to(&numbers[HKW_MODULE_ARITY], arity);
    } else if (form == 0x5f) { /* struct */
        raise_to(&numbers[HKW_MODULE_ARITY], skip_types(r, true));
    } else if (form == 0x5e) { /* array */
        hkw_read_type(r);
        hkw_read_byte(r);
    } else if (form == 0x5d) { /* cont */
        hkw_read_leb(r);
    } else {
        r->bad = true;
    }
}

static void read_types(hkw_reader *r, uint64_t *numbers)
{
    for (uint64_t n = read_count(r); n > 0 && !r->bad; n--) {
        uint64_t of_group = 1;
        if (r->p < r->end && *r->p == 0x4e) { /* rec */
            hkw_read_byte(r);
            of_group = read_count(r);
        }
        for (; of_group > 0 && !r->bad; of_group--)
            read_type(r, numbers);
    }
}

/* Whether it takes as long as a range of memory, of a table or of a segment is large: prefix 0xFC, and
 * memory.init, copy, fill or table.init, copy, grow, fill. */
static bool is_of_range(hkw_reader at)
{
    if (hkw_read_byte(&at) != 0xfc) return false;
    const uint64_t op = hkw_read_leb(&at);
    return op == 8 || (op >= 10 && op <= 12) || (op >= 14 && op <= 17 && op != 16);
}

/* Which of the blocks that are open are loops. */
typedef struct nest {
    uint8_t loop[1 << 12]; /* a bit each */
    size_t depth;
    uint64_t loops;
} nest;

static bool open_block(nest *n, bool loop)
{
    if (n->depth == sizeof n->loop * 8) return false;
    const uint8_t bit = (uint8_t)(1 << n->depth % 8);
    if (loop) n->loop[n->depth / 8] |= bit;
    else n->loop[n->depth / 8] &= (uint8_t)~bit;
    n->depth++;
    n->loops += loop;
    return true;
}

static void close_block(nest *n)
{
    if (n->depth == 0) return; /* the function's */
    n->depth--;
    n->loops -= n->loop[n->depth / 8] >> n->depth % 8 & 1;
}

/* A block's type is a number of 33 bits with a sign: of a type, or below 0 a type of one value, or none. */
static bool has_type_index(const hkw_reader *at)
{
    return at->end - at->p > 1 && ((at->p[1] & 0x80) || !(at->p[1] & 0x40));
}

static void read_code(hkw_reader *r, uint64_t *numbers)
{
    enum { BLOCK = 2, LOOP = 3, IF = 4, END = 0x0b, TRY_TABLE = 0x1f };
    nest n;
    n.depth = 0;
    n.loops = 0;
    uint64_t blocks = 0;
    while (r->p < r->end && !r->bad) {
        const uint8_t op = *r->p;
        if (op == BLOCK || op == LOOP || op == IF || op == TRY_TABLE) {
            blocks += has_type_index(r);
            if (!open_block(&n, op == LOOP)) r->bad = true;
            raise_to(&numbers[HKW_MODULE_DEPTH], n.loops);
        } else if (op == END) {
            close_block(&n);
        } else if (is_of_range(*r)) {
            add(&numbers[HKW_MODULE_RANGES], 1);
        }
        if (hkw_read_instruction(r) == HKW_EFFECT_UNKNOWN) r->bad = true;
    }
    raise_to(&numbers[HKW_MODULE_BLOCKS], blocks);
}

static void read_bodies(hkw_reader *r, bool code, uint64_t *numbers)
{
    for (uint64_t n = read_count(r); n > 0 && !r->bad; n--) {
        const uint64_t size = hkw_read_leb(r);
        hkw_reader body = hkw_read_part(r, size);
        uint64_t locals = 0;
        for (uint64_t groups = read_count(&body); groups > 0 && !body.bad; groups--) {
            add(&locals, hkw_read_leb(&body));
            hkw_read_type(&body);
        }
        if (code) read_code(&body, numbers);
        if (body.bad) r->bad = true;
        raise_to(&numbers[HKW_MODULE_BODY], size);
        raise_to(&numbers[HKW_MODULE_LOCALS], locals);
    }
}

static void read_section(uint8_t id, hkw_reader *r, bool code, uint64_t *numbers)
{
    switch (id) {
    case SECTION_TYPE:
        read_types(r, numbers);
        break;
    case SECTION_IMPORT:
        add(&numbers[HKW_MODULE_IMPORTS], read_count(r));
        break;
    case SECTION_FUNCTION:
        add(&numbers[HKW_MODULE_FUNCTIONS], read_count(r));
        break;
    case SECTION_GLOBAL:
        add(&numbers[HKW_MODULE_GLOBALS], read_count(r));
        break;
    case SECTION_EXPORT:
        add(&numbers[HKW_MODULE_EXPORTS], read_count(r));
        break;
    case SECTION_ELEMENT:
    case SECTION_DATA:
        add(&numbers[HKW_MODULE_SEGMENTS], read_count(r));
        break;
    case SECTION_CODE:
        read_bodies(r, code, numbers);
        break;
    default:
        break;
    }
}

/* Counts what the sections of a binary say, each at most what 64 bits hold; those from HKW_MODULE_BLOCKS on, for
 * which all code has to be read, only if `code`. What is no module of version 1 has its bytes alone. false = the
 * sections cannot be read. */
static bool count_module(const uint8_t *bytes, size_t size, bool code, uint64_t numbers[HKW_MODULE_NUMBERS])
{
    static const uint8_t header[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    memset(numbers, 0, HKW_MODULE_NUMBERS * sizeof *numbers);
    numbers[HKW_MODULE_BYTES] = size;
    if (size < sizeof header || memcmp(bytes, header, sizeof header) != 0) return true;
    hkw_reader r = {bytes + sizeof header, bytes + size, false};
    while (r.p < r.end && !r.bad) {
        const uint8_t id = hkw_read_byte(&r);
        hkw_reader content = hkw_read_part(&r, hkw_read_leb(&r));
        if (!r.bad) read_section(id, &content, code, numbers);
        if (content.bad) r.bad = true;
    }
    return !r.bad;
}

/* ---- What a tenant allows ------------------------------------------------------------------------ */

static const struct {
    const char *has, *option;
} names[HKW_MODULE_NUMBERS] = {
    [HKW_MODULE_BYTES] = {"has %llu bytes", "bytes"},
    [HKW_MODULE_TYPES] = {"has %llu types", "types"},
    [HKW_MODULE_ARITY] = {"has a type of %llu parameters and results", "arity"},
    [HKW_MODULE_IMPORTS] = {"has %llu imports", "imports"},
    [HKW_MODULE_FUNCTIONS] = {"has %llu functions", "functions"},
    [HKW_MODULE_GLOBALS] = {"has %llu globals", "globals"},
    [HKW_MODULE_EXPORTS] = {"has %llu exports", "exports"},
    [HKW_MODULE_SEGMENTS] = {"has %llu segments", "segments"},
    [HKW_MODULE_LOCALS] = {"has a function of %llu locals", "locals"},
    [HKW_MODULE_BODY] = {"has a function of %llu bytes", "body_bytes"},
    [HKW_MODULE_BLOCKS] = {"has a function of %llu blocks with types of the module", "blocks"},
    [HKW_MODULE_DEPTH] = {"has %llu loops within one another", "depth"},
    [HKW_MODULE_RANGES] = {"has %llu instructions on ranges", "ranges"},
};

int hak_wasm_tenant_modules(hak_wasm_tenant *tenant, const hak_wasm_module_limits *given)
{
    hak_wasm_module_limits l = HAK_WASM_MODULE_LIMITS_INIT;
    if (given && !hak_sized_copy(&l, sizeof l, given)) return -1;
    const size_t all[HKW_MODULE_NUMBERS] = {
        [HKW_MODULE_BYTES] = l.bytes,         [HKW_MODULE_TYPES] = l.types,
        [HKW_MODULE_ARITY] = l.arity,         [HKW_MODULE_IMPORTS] = l.imports,
        [HKW_MODULE_FUNCTIONS] = l.functions, [HKW_MODULE_GLOBALS] = l.globals,
        [HKW_MODULE_EXPORTS] = l.exports,     [HKW_MODULE_SEGMENTS] = l.segments,
        [HKW_MODULE_LOCALS] = l.locals,       [HKW_MODULE_BODY] = l.body_bytes,
        [HKW_MODULE_BLOCKS] = l.blocks,       [HKW_MODULE_DEPTH] = l.depth,
        [HKW_MODULE_RANGES] = l.ranges,
    };
    for (size_t i = 0; i < HKW_MODULE_NUMBERS; i++)
        atomic_store_explicit(&tenant->module_limit[i], all[i], memory_order_relaxed);
    return 0;
}

static size_t limit_of(const hak_wasm_tenant *tenant, size_t number)
{
    return atomic_load_explicit(&tenant->module_limit[number], memory_order_relaxed);
}

/* The nearest tenant that allows fewer than n; NULL = none. */
static const hak_wasm_tenant *limiting(const hak_wasm_tenant *tenant, size_t number, uint64_t n)
{
    for (; tenant; tenant = tenant->parent) {
        const size_t limit = limit_of(tenant, number);
        if (limit && n > (limit == HAK_NONE ? 0 : limit)) break;
    }
    return tenant;
}

static bool is_limited(const hak_wasm_tenant *tenant, size_t number)
{
    return limiting(tenant, number, UINT64_MAX);
}

int hak_wasm_module_check(const hak_wasm_tenant *tenant, const void *bytes, size_t size, char *error,
                          size_t error_size)
{
    uint64_t numbers[HKW_MODULE_NUMBERS];
    char has[96];
    if (error_size == 0) error = NULL;
    bool asked = false, code = false;
    for (size_t i = 0; i < HKW_MODULE_NUMBERS; i++) {
        asked = asked || is_limited(tenant, i);
        code = code || (i >= HKW_MODULE_BLOCKS && is_limited(tenant, i));
    }
    if (!asked) return 0;
    const bool read = count_module(bytes, bytes ? size : 0, code, numbers);
    for (size_t i = 0; i < HKW_MODULE_NUMBERS; i++) {
        const hak_wasm_tenant *at = limiting(tenant, i, numbers[i]);
        if (!at) continue;
        if (!error) return -1;
        snprintf(has, sizeof has, names[i].has, (unsigned long long)numbers[i]);
        const size_t limit = limit_of(at, i);
        snprintf(error, error_size, "hakmem: the module %s, and hak_wasm_module_limits.%s of \"%s\" is %zu",
                 has, names[i].option, at->name, limit == HAK_NONE ? 0 : limit);
        return -1;
    }
    if (read) return 0;
    if (error)
        snprintf(error, error_size,
                 "hakmem: the module cannot be read, and its size is limited by "
                 "hak_wasm_module_limits");
    return -1;
}

/* ---- Steps --------------------------------------------------------------------------------------- */

void hak_wasm_tenant_steps(hak_wasm_tenant *tenant, uint64_t most)
{
    atomic_store_explicit(&tenant->steps, most, memory_order_relaxed);
}

uint64_t hak_wasm_step_limit(const hak_wasm_tenant *tenant)
{
    uint64_t least = 0;
    for (; tenant; tenant = tenant->parent) {
        const uint64_t steps = atomic_load_explicit(&tenant->steps, memory_order_relaxed);
        if (steps && (!least || steps < least)) least = steps;
    }
    return least;
}
