#define _GNU_SOURCE
#include "native/learn.h"

#include "base/map.h"
#include "cfi.h"
#include "native/learn_calls.h"

#ifdef HKC_CFI_WALK

#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANGES_MAX = 8, WORD = sizeof(uintptr_t), NAME_MAX_BYTES = 64, ENTRIES_MAX = 256 };

typedef struct range {
    uintptr_t low, high;
} range;

/* The parts of the image that can be read. */
typedef struct reading {
    const hkc_image *core;
    const hkp_functions *functions;
    const hkp_words *words;
    unsigned char *found; /* in tables: a subsystem of each function, or HKP_UNKNOWN */
    uintptr_t type_type;
    range data[RANGES_MAX], text[RANGES_MAX], all[2 * RANGES_MAX];
    size_t data_count, text_count, all_count;
} reading;

static int find_ranges(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    reading *r = user;
    if (info->dlpi_addr != r->core->bias) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        range found = {info->dlpi_addr + ph->p_vaddr, info->dlpi_addr + ph->p_vaddr + ph->p_memsz};
        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_R) || found.low < r->core->low ||
            found.high > r->core->high || r->all_count == 2 * RANGES_MAX)
            continue;
        r->all[r->all_count++] = found;
        if ((ph->p_flags & PF_X) && r->text_count < RANGES_MAX) r->text[r->text_count++] = found;
        else if ((ph->p_flags & PF_W) && r->data_count < RANGES_MAX) r->data[r->data_count++] = found;
    }
    return 1;
}

static bool in(const range *ranges, size_t count, uintptr_t at, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (at >= ranges[i].low && at < ranges[i].high && size <= ranges[i].high - at) return true;
    return false;
}

/* Whether it may point into the image. */
static bool pointer(const reading *r, uintptr_t value)
{
    return value - r->core->low < r->core->high - r->core->low;
}

/* 0 where that is not to be read. */
static uintptr_t word(const reading *r, uintptr_t at)
{
    return at % WORD == 0 && in(r->all, r->all_count, at, WORD) ? *(const uintptr_t *)at : 0;
}

/* Whether code is there: a segment that is executable may have constants beside its functions. */
static bool is_code(const reading *r, uintptr_t at)
{
    const hkp_functions *f = r->functions;
    return in(r->text, r->text_count, at, 1) && at >= f->starts[0] && at <= f->starts[f->count - 1];
}

/* Whether there is the name of a type or module: letters, digits, `_` and `.`, and `-` of method-wrapper. */
static bool is_name(const reading *r, uintptr_t at)
{
    if (!in(r->all, r->all_count, at, NAME_MAX_BYTES) || is_code(r, at)) return false;
    const char *p = (const char *)at;
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return n >= 2 && n < NAME_MAX_BYTES && p[n] == 0;
}

/* A function that is in tables of two parts is of none. */
static void book(reading *r, uintptr_t function, hkp_subsystem subsystem)
{
    size_t i = hkp_functions_number(r->functions, function);
    if (i == r->functions->count) return;
    if (r->found[i] == HKP_UNKNOWN) r->found[i] = (unsigned char)subsystem;
    else if (r->found[i] != subsystem) r->found[i] = HKP_CORE;
}

/* A table of entries of `words` words that ends with one whose first is 0. */
static void book_table(reading *r, uintptr_t at, size_t words, hkp_subsystem subsystem)
{
    for (int i = 0; i < ENTRIES_MAX && word(r, at) != 0; i++, at += words * WORD)
        for (size_t k = 1; k < words; k++)
            book(r, word(r, at + k * WORD), subsystem);
}

/* Where things stand in a PyTypeObject of 3.10 to 3.15, in words. */
enum {
    TYPE_WORDS = 51,
    TYPE_NAME = 3,
    TYPE_SIZE = 4,
    TYPE_DEALLOC = 6,
    TYPE_METHODS = 29,
    TYPE_GETSET = 31,
    TYPE_CALL = 16,
    TYPE_ALLOC = 38
};
static const struct {
    uint8_t at, words;
} suites[] = {{10, 4}, {12, 36}, {13, 10}, {14, 3}, {20, 2}}; /* async, number, sequence, mapping, buffer */
enum { METHOD_WORDS = 4, GETSET_WORDS = 5 };

/* The count of references that an object of the image begins with. From 3.14 on there are flags above it, in
 * 16 bits. */
static bool is_count(uintptr_t value)
{
    const uintptr_t count = value & (UINTPTR_MAX >> 16);
    return count != 0 && count <= UINT32_MAX;
}

static bool is_type(const reading *r, uintptr_t at)
{
    uintptr_t type = word(r, at + WORD), size = word(r, at + TYPE_SIZE * WORD);
    uintptr_t dealloc = word(r, at + TYPE_DEALLOC * WORD);
    return is_count(word(r, at)) && (type == 0 || type == r->type_type) && word(r, at + 2 * WORD) == 0 &&
           size >= 2 * WORD && size < 65536 && (dealloc == 0 || in(r->text, r->text_count, dealloc, 1)) &&
           is_name(r, word(r, at + TYPE_NAME * WORD));
}

/* What a type allocates its objects with (tp_alloc) serves other types too, whose tables need not say so:
 * that of dict is, from 3.13 on, the function below the exported one of all types. A call of a type makes an
 * instance. */
static void learn_type(reading *r, uintptr_t at)
{
    hkp_subsystem subsystem = hkp_subsystem_of_type(r->words, (const char *)word(r, at + TYPE_NAME * WORD));
    for (size_t i = TYPE_SIZE; i < TYPE_WORDS; i++) {
        const bool makes = i == TYPE_CALL && at == r->type_type;
        book(r, word(r, at + i * WORD), i == TYPE_ALLOC ? HKP_HELPER : makes ? HKP_INSTANCE : subsystem);
    }
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++) {
        uintptr_t suite = word(r, at + suites[s].at * WORD);
        for (size_t i = 0; suite != 0 && i < suites[s].words; i++)
            book(r, word(r, suite + i * WORD), subsystem);
    }
    book_table(r, word(r, at + TYPE_METHODS * WORD), METHOD_WORDS, subsystem);
    book_table(r, word(r, at + TYPE_GETSET * WORD), GETSET_WORDS, subsystem);
}

/* Slots: a number and a pointer, to a function or to a table of methods or attributes. */
enum { SLOTS_MAX = 110, SLOT_ALLOC = 47, SLOT_METHODS = 64, SLOT_GETSET = 73 };

static bool is_slots(const reading *r, uintptr_t at)
{
    int count = 0;
    for (; word(r, at) != 0; at += 2 * WORD)
        if (word(r, at) > SLOTS_MAX || ++count > SLOTS_MAX) return false;
    return count > 0 && in(r->data, r->data_count, at, 2 * WORD);
}

static void learn_slots(reading *r, uintptr_t at, hkp_subsystem subsystem)
{
    for (; word(r, at) != 0; at += 2 * WORD) {
        uintptr_t value = word(r, at + WORD);
        if (word(r, at) == SLOT_METHODS) book_table(r, value, METHOD_WORDS, subsystem);
        else if (word(r, at) == SLOT_GETSET) book_table(r, value, GETSET_WORDS, subsystem);
        else book(r, value, word(r, at) == SLOT_ALLOC ? HKP_HELPER : subsystem);
    }
}

/* PyType_Spec: name, two sizes in a word, flags, slots. */
static bool is_spec(const reading *r, uintptr_t at)
{
    uintptr_t flags = word(r, at + 2 * WORD), sizes = word(r, at + WORD);
    return flags != 0 && flags <= UINT32_MAX && (uint32_t)sizes < 65536 && sizes >> 32 < 4096 &&
           is_name(r, word(r, at)) && is_slots(r, word(r, at + 3 * WORD));
}

/* The short look at a type or a module: of no type yet, or of `type`. */
static bool may_be_object(const reading *r, uintptr_t at, uintptr_t high)
{
    if (high - at < TYPE_WORDS * WORD) return false;
    uintptr_t type = ((const uintptr_t *)at)[1];
    return (type == 0 || type == r->type_type) && ((const uintptr_t *)at)[2] == 0;
}

/* The same for a specification: flags are no pointer. */
static bool may_be_spec(const reading *r, uintptr_t at, uintptr_t high)
{
    if (high - at < 4 * WORD) return false;
    uintptr_t flags = ((const uintptr_t *)at)[2];
    return flags != 0 && flags <= UINT32_MAX && !pointer(r, flags);
}

/* PyModuleDef: an empty head of five words, name, text, size, methods, slots, and three functions. */
static bool is_module(const reading *r, uintptr_t at)
{
    for (size_t i = 1; i < 5; i++)
        if (word(r, at + i * WORD) != 0) return false;
    return is_count(word(r, at)) && is_name(r, word(r, at + 5 * WORD)) &&
           (intptr_t)word(r, at + 7 * WORD) >= -1 && word(r, at + 7 * WORD) + 1 < 65536;
}

static void learn_module(reading *r, uintptr_t at)
{
    hkp_subsystem subsystem = hkp_subsystem_of_type(r->words, (const char *)word(r, at + 5 * WORD));
    book_table(r, word(r, at + 8 * WORD), METHOD_WORDS, subsystem);
    uintptr_t slots = word(r, at + 9 * WORD);
    if (is_slots(r, slots)) learn_slots(r, slots, subsystem);
}

static void learn_tables(reading *r)
{
    for (size_t i = 0; i < r->data_count; i++) {
        uintptr_t at = (r->data[i].low + WORD - 1) & ~(uintptr_t)(WORD - 1);
        for (; at < r->data[i].high; at += WORD) {
            /* most words are none of these: the first look is to be short */
            uintptr_t value = *(const uintptr_t *)at;
            if (value == 0) continue;
            if (is_count(value) && !pointer(r, value)) {
                if (!may_be_object(r, at, r->data[i].high)) continue;
                if (is_type(r, at)) learn_type(r, at);
                else if (is_module(r, at)) learn_module(r, at);
            } else if (pointer(r, value) && may_be_spec(r, at, r->data[i].high) && is_spec(r, at)) {
                learn_slots(r, word(r, at + 3 * WORD), hkp_subsystem_of_type(r->words, (const char *)value));
            }
        }
    }
}

/* Names were read all over the constants: their pages come again for who needs them. Not what is mapped
 * first, which is the loader's. */
static void give_back(const reading *r)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < r->all_count; i++) {
        uintptr_t low = (r->all[i].low + page - 1) & ~(page - 1), high = r->all[i].high & ~(page - 1);
        bool constants = r->all[i].low != r->core->low && !in(r->text, r->text_count, r->all[i].low, 1) &&
                         !in(r->data, r->data_count, r->all[i].low, 1);
        if (constants && low < high) madvise((void *)low, high - low, MADV_DONTNEED);
    }
}

void hkp_learn(const hkc_image *core, const hkp_functions *functions, const hkp_words *words,
               unsigned char *subsystems, const void *type_type)
{
    size_t count = functions->count;
    unsigned char *found = hkp_pages(count);
    if (!found) return;
    memset(found, HKP_UNKNOWN, count);
    reading r = {.core = core,
                 .functions = functions,
                 .words = words,
                 .found = found,
                 .type_type = (uintptr_t)type_type};
    dl_iterate_phdr(find_ranges, &r);
    learn_tables(&r);
    give_back(&r);
    /* names go before tables */
    for (size_t i = 0; i < count; i++)
        if (subsystems[i] != HKP_UNKNOWN) found[i] = subsystems[i];
    hkp_learn_calls(core, functions, found);
    for (size_t i = 0; i < count; i++)
        if (subsystems[i] == HKP_UNKNOWN && found[i] != HKP_CORE) subsystems[i] = found[i];
    munmap(found, count);
}

#endif
