#include "module.h"

#include "binary.h"

#include <hakmem/wasm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTION_TYPE = 1,
    SECTION_IMPORT = 2,
    SECTION_FUNCTION = 3,
    SECTION_TABLE = 4,
    SECTION_MEMORY = 5,
    SECTION_GLOBAL = 6,
    SECTION_EXPORT = 7,
    SECTION_ELEMENT = 9,
    SECTION_CODE = 10
};
enum { EXTERN_FUNCTION, EXTERN_TABLE, EXTERN_MEMORY, EXTERN_GLOBAL, EXTERN_TAG };

/* What one pass over the binary found. */
typedef struct scan {
    const uint8_t *bytes;
    hkw_reader exports;        /* content of the export section, or empty */
    const uint8_t *exports_at; /* where that section begins, or where it belongs */
    const uint8_t *exports_end;
    uint32_t export_count;
    uint32_t imported_globals, imported_tables, imported_memories;
    const char *borrowed; /* why the state is not all the instance's own */
    uint32_t memories;
    uint32_t *globals; /* indices of the mutable ones */
    uint32_t global_count;
    uint32_t
        *referred; /* indices of those that a reference may refer to, in no order until they are needed */
    size_t referred_count, referred_room;
    const char *refused;
    hkw_table *tables;
    uint32_t table_count;
    bool other_tables; /* one is not of functions */
    bool exports_table, changes_table, grows_table;
    bool part; /* of a program */
    uint64_t passive;
    uint64_t types, imports, functions, all_globals, all_exports, elements; /* as the sections say */
    const char *broken;
} scan;

static void note_function(scan *s, uint64_t index)
{
    if (s->referred_count == s->referred_room) {
        const size_t room = s->referred_room ? 2 * s->referred_room : 64;
        uint32_t *larger = realloc(s->referred, room * sizeof *larger);
        if (!larger) {
            s->refused = "there is no memory to read it";
            return;
        }
        s->referred = larger;
        s->referred_room = room;
    }
    s->referred[s->referred_count++] = (uint32_t)index;
}

/* Notes the function of a ref.func, if that is the next instruction. */
static void note_reference(scan *s, hkw_reader r)
{
    if (r.p < r.end && hkw_read_byte(&r) == 0xd2) note_function(s, hkw_read_leb(&r));
}

/* Reads an expression of constants, its end included, also those of GC types, which hkw_read_instruction does
 * not know. */
static void read_constant(scan *s, hkw_reader *r)
{
    while (!r->bad) {
        note_reference(s, *r);
        if (r->p < r->end && *r->p == 0xfb) {
            hkw_read_byte(r);
            uint64_t op = hkw_read_leb(r);
            if (op == 0 || op == 1 || (op >= 6 && op <= 8))
                hkw_read_leb(r);                        /* struct.new to array.new_fixed */
            else if (op < 26 || op > 28) r->bad = true; /* conversions, ref.i31 */
            if (op == 8) hkw_read_leb(r);
            continue;
        }
        hkw_effect effect = hkw_read_instruction(r);
        if (effect == HKW_EFFECT_END) return;
        if (effect != HKW_EFFECT_NONE) r->bad = true;
    }
}

static void read_tables(scan *s, hkw_reader r)
{
    uint64_t count = hkw_read_leb(&r);
    if (count > (uint64_t)(r.end - r.p) || s->tables) r.bad = true;
    if (!r.bad && count) s->tables = malloc((size_t)count * sizeof *s->tables);
    for (uint64_t i = 0; i < count && s->tables && !r.bad; i++) {
        bool initial = r.p < r.end && *r.p == 0x40;
        if (initial) hkw_read_skip(&r, 2);
        uint8_t type = hkw_read_type(&r), flags = hkw_read_byte(&r);
        hkw_table *t = &s->tables[s->table_count++];
        s->other_tables |= type != 0x70;
        t->element = type == 0x70 || type == 0x6f ? 8 : 16; /* continuations have 16 */
        t->least = hkw_read_leb(&r);
        t->most = flags & 1 ? hkw_read_leb(&r) : UINT64_MAX;
        if (initial) read_constant(s, &r);
    }
    if (r.bad) s->broken = "hakmem: the module's tables cannot be read";
    else if (count && !s->tables) s->broken = "hakmem: no memory for a module";
}

static void read_elements(scan *s, hkw_reader r)
{
    for (uint64_t n = hkw_read_leb(&r); n > 0 && !r.bad; n--) {
        uint64_t flags = hkw_read_leb(&r);
        bool active = !(flags & 1), expressions = flags & 4;
        if (flags > 7) r.bad = true;
        if (active && flags & 2) hkw_read_leb(&r); /* the table */
        if (active) read_constant(s, &r);
        if (flags & 3) hkw_read_type(&r);
        uint64_t count = hkw_read_leb(&r);
        if (count > (uint64_t)(r.end - r.p)) r.bad = true;
        s->elements += r.bad ? 0 : count;
        if (!active && !(flags & 2)) s->passive += count;
        for (; count > 0 && !r.bad; count--) {
            if (expressions) read_constant(s, &r);
            else note_function(s, hkw_read_leb(&r));
        }
    }
    if (r.bad) s->broken = "hakmem: the module's element segments cannot be read";
}

/* Returns the flags. */
static uint8_t read_limits(hkw_reader *r)
{
    const uint8_t flags = hkw_read_byte(r);
    hkw_read_leb(r);
    if (flags & 1) hkw_read_leb(r);
    if (flags & 8) hkw_read_leb(r); /* the size of a page */
    return flags;
}

static void read_import(scan *s, hkw_reader *r)
{
    switch (hkw_read_byte(r)) {
    case EXTERN_FUNCTION:
        hkw_read_leb(r);
        break;
    case EXTERN_GLOBAL:
        hkw_read_type(r);
        if (hkw_read_byte(r) & 1) s->borrowed = "it imports a mutable global";
        s->imported_globals++;
        break;
    case EXTERN_TAG:
        hkw_read_byte(r);
        hkw_read_leb(r);
        break;
    case EXTERN_TABLE:
        s->borrowed = "it imports a table";
        s->imported_tables++;
        hkw_read_type(r);
        read_limits(r);
        break;
    case EXTERN_MEMORY:
        s->borrowed = "it imports its memory";
        s->imported_memories++;
        /* Such a memory can be the linker's, which no part of a program brings back. Any other memory belongs
         * to a store, and so to a part of the program. */
        if (read_limits(r) & 2) s->refused = "its memory is shared between threads";
        break;
    default:
        r->bad = true;
    }
}

static void read_imports(scan *s, hkw_reader r)
{
    for (uint64_t n = hkw_read_leb(&r); n > 0 && !r.bad; n--) {
        hkw_read_skip(&r, hkw_read_leb(&r));
        hkw_read_skip(&r, hkw_read_leb(&r));
        read_import(s, &r);
    }
    if (r.bad) s->refused = "its imports cannot be read";
}

static void read_memories(scan *s, hkw_reader r)
{
    uint64_t count = hkw_read_leb(&r);
    s->memories = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    if (s->refused) return;
    uint8_t flags = hkw_read_byte(&r);
    if (flags & 2) s->refused = "its memory is shared between threads";
    if (flags & 8) s->refused = "its memory has pages of another size than 64 KiB";
}

static void read_globals(scan *s, hkw_reader r)
{
    uint64_t count = hkw_read_leb(&r);
    /* A second such section is invalid, which is found only when the copy is compiled. */
    if (count > (uint64_t)(r.end - r.p) || s->globals) r.bad = true;
    if (!r.bad) s->globals = malloc(((size_t)count + 1) * sizeof *s->globals);
    for (uint64_t i = 0; i < count && s->globals && !r.bad && !s->refused; i++) {
        uint8_t type = hkw_read_type(&r);
        if (hkw_read_byte(&r) & 1) {
            if (type < 0x7b || type > 0x7f) s->refused = "it has a mutable global that is a reference";
            s->globals[s->global_count++] = s->imported_globals + (uint32_t)i;
        }
        hkw_effect effect;
        do {
            note_reference(s, r);
            effect = hkw_read_instruction(&r);
        } while (effect == HKW_EFFECT_NONE && !r.bad);
        if (effect != HKW_EFFECT_END) r.bad = true;
    }
    if (r.bad) s->refused = "its globals cannot be read";
    else if (!s->globals) s->refused = "there is no memory to read it";
}

static void read_exports(scan *s, hkw_reader r)
{
    s->export_count = (uint32_t)hkw_read_leb(&r);
    s->exports = r;
    for (uint32_t n = s->export_count; n > 0 && !r.bad; n--) {
        hkw_reader name = hkw_read_part(&r, hkw_read_leb(&r));
        const size_t prefix = sizeof HKW_EXPORT_PREFIX - 1;
        if ((size_t)(name.end - name.p) >= prefix && memcmp(name.p, HKW_EXPORT_PREFIX, prefix) == 0) {
            s->refused = "it exports a name that begins with " HKW_EXPORT_PREFIX;
        }
        const uint8_t kind = hkw_read_byte(&r);
        const uint64_t index = hkw_read_leb(&r);
        if (kind == EXTERN_FUNCTION) note_function(s, index);
        s->exports_table |= kind == EXTERN_TABLE;
    }
    if (r.bad) s->refused = "its exports cannot be read";
}

static void read_code(scan *s, hkw_reader r)
{
    for (uint64_t n = hkw_read_leb(&r); n > 0 && !r.bad && !s->refused; n--) {
        hkw_reader body = hkw_read_part(&r, hkw_read_leb(&r));
        for (uint64_t groups = hkw_read_leb(&body); groups > 0 && !body.bad; groups--) {
            hkw_read_leb(&body);
            hkw_read_type(&body);
        }
        while (body.p < body.end && !body.bad && !s->refused) {
            switch (hkw_read_instruction(&body)) {
            case HKW_EFFECT_GROW:
                s->grows_table = true;
                s->changes_table = true;
                break;
            case HKW_EFFECT_TABLE:
                s->changes_table = true;
                break;
            case HKW_EFFECT_DROP:
                s->refused = "its code drops a segment";
                break;
            case HKW_EFFECT_UNKNOWN:
                s->refused = "its code has an instruction whose effect is not known";
                break;
            default:
                break;
            }
        }
        if (body.bad) r.bad = true;
    }
    if (r.bad) s->refused = "its code cannot be read";
}

/* Whether its code may change elements of tables, or another part of a program. What the host changes by an
 * export is the host's to bring back: compilers export tables that nobody changes. */
static bool shows_tables(const scan *s)
{
    return s->changes_table || s->imported_tables || (s->part && s->exports_table);
}

/* How many exports the copy has beyond those of the module. */
static uint64_t added_exports(const scan *s)
{
    const bool tables = shows_tables(s);
    return (uint64_t)s->global_count + s->memories + (tables ? s->table_count + s->referred_count : 0);
}

static int by_index(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Tables that change have to be of functions, which are told by what the module refers to. */
static void settle_tables(scan *s)
{
    size_t count = 0;
    if (s->refused || !shows_tables(s)) return;
    if (s->other_tables) {
        s->refused = "its tables change, and one is of other references than functions";
        return;
    }
    if (s->referred_count) qsort(s->referred, s->referred_count, sizeof *s->referred, by_index);
    for (size_t i = 0; i < s->referred_count; i++)
        if (count == 0 || s->referred[count - 1] != s->referred[i]) s->referred[count++] = s->referred[i];
    s->referred_count = count;
}

/* What the section has, at most as many as it has bytes. */
static void read_count(scan *s, uint8_t id, hkw_reader r)
{
    uint64_t *to = id == SECTION_TYPE       ? &s->types
                   : id == SECTION_IMPORT   ? &s->imports
                   : id == SECTION_FUNCTION ? &s->functions
                   : id == SECTION_GLOBAL   ? &s->all_globals
                   : id == SECTION_EXPORT   ? &s->all_exports
                                            : NULL;
    if (!to) return;
    const uint64_t count = hkw_read_leb(&r), most = (uint64_t)(r.end - r.p);
    *to = count < most ? count : most;
}

/* A global has 16 bytes in its instance; an import, a table, a memory, and a function that something refers
 * to, 32 at most: an export, an element, or a global's first value. For elements that come back, the adapter
 * keeps 16 bytes of each function. */
static uint64_t own_bytes(const scan *s)
{
    enum { GLOBAL = 16, OTHER = 32, FOUND = 16 };
    const uint64_t functions = s->imports + s->functions;
    const uint64_t found = shows_tables(s) && !s->refused ? s->referred_count : 0;
    uint64_t referred = s->all_exports + s->elements + s->all_globals;
    if (referred > functions) referred = functions;
    return s->all_globals * GLOBAL + (s->imports + s->table_count + s->memories + referred) * OTHER +
           found * FOUND;
}

/* As measured: of each thing, what wasmtime keeps while the module is there, the exports of a copy too. */
static uint64_t kept_bytes(const scan *s)
{
    const uint64_t added = s->refused ? 0 : added_exports(s);
    enum { TYPE = 1024, IMPORT = 176, FUNCTION = 40, GLOBAL = 104, EXPORT = 136, ELEMENT = 8 };
    return s->types * TYPE + s->imports * IMPORT + s->functions * FUNCTION + s->all_globals * GLOBAL +
           (s->all_exports + added) * EXPORT + s->elements * ELEMENT;
}

static void read_sections(scan *s, hkw_reader r)
{
    static const uint8_t header[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    if (r.end - r.p < (ptrdiff_t)sizeof header || memcmp(r.p, header, sizeof header) != 0) {
        s->refused = "it is not a binary module of version 1";
        return;
    }
    hkw_read_skip(&r, sizeof header);
    while (r.p < r.end && !r.bad) {
        const uint8_t *at = r.p;
        uint8_t id = hkw_read_byte(&r);
        hkw_reader content = hkw_read_part(&r, hkw_read_leb(&r));
        read_count(s, id, content);
        if (id == SECTION_TABLE) read_tables(s, content);
        if (id == SECTION_ELEMENT) read_elements(s, content);
        if (id == SECTION_MEMORY) read_memories(s, content);
        if (s->refused) continue;
        /* The export section comes after those up to globals and before all others; 13 are tags. */
        if (!s->exports_at && id >= SECTION_EXPORT && id != 13) {
            s->exports_at = at;
            s->exports_end = id == SECTION_EXPORT ? r.p : at;
        }
        if (id == SECTION_IMPORT) read_imports(s, content);
        if (id == SECTION_GLOBAL) read_globals(s, content);
        if (id == SECTION_EXPORT) read_exports(s, content);
        if (id == SECTION_CODE) read_code(s, content);
    }
    if (r.bad && !s->refused) s->refused = "it ends within a section";
    if ((uint64_t)s->memories + s->imported_memories > 1 && !s->refused)
        s->refused = "it has more than one memory";
    if (!s->exports_at) s->exports_at = s->exports_end = r.end;
    settle_tables(s);
}

/* Appends to a buffer that is large enough. */
static void put(uint8_t **to, const void *bytes, size_t n)
{
    memcpy(*to, bytes, n);
    *to += n;
}

static void put_leb(uint8_t **to, uint32_t value)
{
    while (value >= 0x80) {
        *(*to)++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *(*to)++ = (uint8_t)value;
}

static void put_export(uint8_t **to, const char *name, uint8_t kind, uint32_t index)
{
    put_leb(to, (uint32_t)strlen(name));
    put(to, name, strlen(name));
    *(*to)++ = kind;
    put_leb(to, index);
}

enum { LEB = 5, LONGEST = 32 }; /* bytes of a number, and of an added export */

/* indices NULL = from `first` on. */
static void put_exports(uint8_t **to, const char *name, uint8_t kind, const uint32_t *indices, uint32_t first,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char numbered[LONGEST];
        snprintf(numbered, sizeof numbered, "%s%u", name, (unsigned)i);
        put_export(to, numbered, kind, indices ? indices[i] : first + (uint32_t)i);
    }
}

static void copy_with_exports(const scan *s, size_t size, hkw_module *out)
{
    const bool tables = shows_tables(s);
    size_t old = (size_t)(s->exports.end - s->exports.p);
    size_t room = old + LEB + (size_t)added_exports(s) * LONGEST;
    uint8_t *content = malloc(room);
    out->bytes = malloc(size + 1 + LEB + room);
    if (!content || !out->bytes) {
        free(content);
        free(out->bytes);
        out->bytes = NULL;
        out->refused = "there is no memory to copy it";
        return;
    }

    uint8_t *end = content;
    put_leb(&end, s->export_count + (uint32_t)added_exports(s));
    if (old > 0) put(&end, s->exports.p, old);
    if (s->memories) put_export(&end, HKW_EXPORT_MEMORY, EXTERN_MEMORY, s->imported_memories);
    put_exports(&end, HKW_EXPORT_GLOBAL, EXTERN_GLOBAL, s->globals, 0, s->global_count);
    if (tables) {
        put_exports(&end, HKW_EXPORT_TABLE, EXTERN_TABLE, NULL, s->imported_tables, s->table_count);
        put_exports(&end, HKW_EXPORT_FUNCTION, EXTERN_FUNCTION, s->referred, 0, s->referred_count);
    }

    uint8_t *to = out->bytes;
    put(&to, s->bytes, (size_t)(s->exports_at - s->bytes));
    *to++ = SECTION_EXPORT;
    put_leb(&to, (uint32_t)(end - content));
    put(&to, content, (size_t)(end - content));
    put(&to, s->exports_end, (size_t)(s->bytes + size - s->exports_end));
    out->size = (size_t)(to - out->bytes);
    out->globals = s->global_count;
    out->functions = tables ? (uint32_t)s->referred_count : 0;
    out->tables_change = tables && s->table_count;
    out->tables_grow = s->grows_table;
    out->changes_table = s->changes_table;
    out->exports_table = s->exports_table;
    free(content);
}

void hkw_module_read(const uint8_t *bytes, size_t size, bool part, hkw_module *out)
{
    memset(out, 0, sizeof *out);
    scan s = {0};
    s.bytes = bytes;
    s.part = part;
    if (size > UINT32_MAX) {
        out->refused = "it is larger than 4 GiB";
        return;
    }
    read_sections(&s, (hkw_reader){bytes, bytes + size, false});
    out->refused = s.refused;
    out->borrowed = s.borrowed;
    out->tables = s.tables;
    out->table_count = s.table_count;
    out->passive = s.passive;
    out->own = own_bytes(&s);
    out->kept = kept_bytes(&s);
    out->memories = s.memories;
    out->broken = s.broken;
    if (!s.refused) copy_with_exports(&s, size, out);
    free(s.globals);
    free(s.referred);
}

int hak_wasm_module_expose(const void *bytes, size_t size, hak_wasm_code *copy, const char **why)
{
    hkw_module module = {.refused = "there is no module"};
    if (bytes && copy) hkw_module_read(bytes, size, false, &module);
    free(module.tables);
    const char *refused = module.refused ? module.refused : module.borrowed;
    if (why) *why = refused;
    if (refused) {
        free(module.bytes);
        return -1;
    }
    *copy = (hak_wasm_code){module.bytes, module.size};
    return 0;
}
