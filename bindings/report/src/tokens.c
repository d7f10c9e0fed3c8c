#include "tokens.h"

#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t hkr_tokens_most;

enum { DIGITS = 16, SLOTS = 1 << 14, NAMES = 3, NAME = 4096, IMAGES = 256 };
#define PREFIX "token "

/* ---- The token of a name --------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static uint64_t little_endian(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/* SipHash-2-4 with the key that LLVM uses. */
static uint64_t hash_of(const char *name, size_t size)
{
    const uint64_t key[2] = {0x794a1079ebc9d4b5u, 0xd48187421b8bec6fu};
    uint64_t v[4] = {0x736f6d6570736575u ^ key[0], 0x646f72616e646f6du ^ key[1], 0x6c7967656e657261u ^ key[0],
                     0x7465646279746573u ^ key[1]};
    const unsigned char *bytes = (const unsigned char *)name;
    for (size_t at = 0;; at += 8) {
        const bool last = size - at < 8;
        const uint64_t word =
            last ? little_endian(bytes + at, size - at) | (uint64_t)size << 56 : little_endian(bytes + at, 8);
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
        if (last) break;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- The tokens that are looked for ---------------------------------------------------------------- */

typedef struct token {
    uint64_t value;
    char *names[NAMES];
    unsigned count; /* names; beyond NAMES they are only counted */
    bool is_set;
} token;

/* A file whose types were compared with the first `tokens` of them. */
typedef struct image {
    char *path, *build_id;
    size_t tokens;
} image;

/* What was looked for and found stays for the next report: the page of a live process asks each second. */
typedef struct search {
    token slots[SLOTS];
    size_t count;
    image images[IMAGES];
    size_t image_count;
    bool records; /* only structs, classes and unions are looked at: the likeliest come first */
} search;
static search found_so_far;

static token *slot_of(search *s, uint64_t value)
{
    size_t i = (size_t)(value % SLOTS);
    while (s->slots[i].is_set && s->slots[i].value != value)
        i = (i + 1) % SLOTS;
    return &s->slots[i];
}

static bool is_token(const char *label, uint64_t *value)
{
    char *end;
    if (!label || strncmp(label, PREFIX, strlen(PREFIX)) != 0) return false;
    *value = strtoull(label + strlen(PREFIX), &end, 16);
    return *end == '\0' && end == label + strlen(PREFIX) + DIGITS;
}

static void look_for(search *s, const char *label)
{
    uint64_t value;
    if (!is_token(label, &value) || s->count == SLOTS / 2) return;
    token *t = slot_of(s, value);
    if (t->is_set) return;
    *t = (token){.value = value, .is_set = true};
    s->count++;
}

static void found(search *s, uint64_t value, const char *name)
{
    token *t = slot_of(s, value);
    if (!t->is_set) return;
    for (unsigned i = 0; i < t->count && i < NAMES; i++)
        if (strcmp(t->names[i], name) == 0) return;
    if (t->count < NAMES && !(t->names[t->count] = strdup(name))) return;
    t->count++;
}

/* Both modes that name types; of the second one, types with and without pointers. */
static void compare(search *s, const char *name)
{
    const uint64_t most = hkr_tokens_most ? hkr_tokens_most : UINT64_MAX, half = most / 2;
    const uint64_t hash = hash_of(name, strlen(name));
    found(s, hash % most, name);
    if (half == 0) return;
    found(s, hash % half, name);
    found(s, hash % half + half, name);
}

/* ---- Names as clang spells them where it makes tokens ---------------------------------------------- */

/* "a<b<c> >" as "a<b<c>>". */
static void join_ends(char *name)
{
    char *to = name;
    for (const char *at = name; *at; at++)
        if (!(*at == ' ' && at[1] == '>' && to > name && to[-1] == '>')) *to++ = *at;
    *to = '\0';
}

/* by: not longer than `what`. */
static void replace_all(char *name, const char *what, const char *by)
{
    const size_t size = strlen(what), length = strlen(by);
    for (char *at = name; (at = strstr(at, what)) != NULL; at += length) {
        memcpy(at, by, length);
        memmove(at + length, at + size, strlen(at + size) + 1);
    }
}

/* Behind the argument of a template that begins here. */
static char *argument_end(char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (*at == '<') depth++;
        else if (*at == '>' && depth-- == 0) break;
        else if (*at == ',' && depth == 0) break;
    }
    return at;
}

/* Arguments that have the value which the template gives them by itself: those of the standard library. */
static void drop_defaults(char *name)
{
    static const char *const known[] = {"std::allocator<", "std::char_traits<", "std::less<",
                                        "std::hash<",      "std::equal_to<",    "std::default_delete<",
                                        "std::deque<",     "std::regex_traits<"};
    for (char *at = name; (at = strstr(at, ", ")) != NULL;) {
        bool drops = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            drops |= strncmp(at + 2, known[i], strlen(known[i])) == 0;
        char *end = argument_end(at + 2);
        if (drops) memmove(at, end, strlen(end) + 1);
        else at += 2;
    }
}

enum { JOINED = 1, WITHOUT_INLINE = 2, WITHOUT_DEFAULTS = 4, SPELLINGS = 8 };

static void compare_all(search *s, const char *name)
{
    static const char *const forms[][2] = {
        {"", ""}, {"", " *"}, {"", " **"}, {"const ", ""}, {"const ", " *"}};
    char text[NAME + 16];
    for (size_t i = 0; i < (s->records ? 1 : sizeof forms / sizeof forms[0]); i++) {
        snprintf(text, sizeof text, "%s%s%s", forms[i][0], name, forms[i][1]);
        compare(s, text);
    }
}

static void each_type(void *user, const char *name, bool is_record)
{
    char text[NAME];
    if (strlen(name) >= sizeof text || (((search *)user)->records && !is_record)) return;
    if (!strpbrk(name, "<:")) {
        compare_all(user, name);
        return;
    }
    for (unsigned spelling = 0; spelling < SPELLINGS; spelling++) {
        strcpy(text, name);
        if (spelling & WITHOUT_INLINE) {
            replace_all(text, "__cxx11::", "");
            replace_all(text, "__1::", "");
        }
        if (spelling & WITHOUT_DEFAULTS) drop_defaults(text);
        if (spelling & JOINED) join_ends(text);
        /* An enumerator of std::make_shared. */
        replace_all(text, "(__gnu_cxx::_Lock_policy)2", "__gnu_cxx::_S_atomic");
        compare_all(user, text);
    }
}

/* ---- Labels ---------------------------------------------------------------------------------------- */

static bool rename_label(search *s, json_t *object, const char *key)
{
    char text[NAMES * NAME + 64];
    uint64_t value;
    if (!is_token(json_string_value(json_object_get(object, key)), &value)) return false;
    const token *t = slot_of(s, value);
    if (!t->is_set || t->count == 0) return false;
    size_t used = 0;
    for (unsigned i = 0; i < t->count && i < NAMES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " | " : "", t->names[i]);
    if (t->count > NAMES) snprintf(text + used, sizeof text - used, " | %u more", t->count - NAMES);
    return json_object_set_new(object, key, json_string(text)) == 0;
}

static void each_label(search *s, json_t *array, const char *key, bool names, bool *changed)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *object = json_array_get(array, i);
        if (names) *changed |= rename_label(s, object, key);
        else look_for(s, json_string_value(json_object_get(object, key)));
    }
}

static void each_array(search *s, json_t *context, bool names, bool *changed)
{
    each_label(s, json_object_get(context, "labels"), "name", names, changed);
    each_label(s, json_object_get(context, "stacks"), "label", names, changed);
}

static image *image_of(search *s, const char *path, const char *build_id)
{
    for (size_t i = 0; i < s->image_count; i++)
        if (strcmp(s->images[i].path, path) == 0 && strcmp(s->images[i].build_id, build_id) == 0)
            return &s->images[i];
    if (s->image_count == IMAGES) return NULL;
    image *made = &s->images[s->image_count];
    *made = (image){.path = strdup(path), .build_id = strdup(build_id)};
    if (made->path && made->build_id) {
        s->image_count++;
        return made;
    }
    free(made->path);
    free(made->build_id);
    return NULL;
}

/* Of programs, or of libraries: what is likeliest comes first, as a token below a maximum is that of many
 * types. */
static void find_names(search *s, const json_t *images, bool libraries)
{
    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *from = json_array_get(images, i);
        const char *path = json_string_value(json_object_get(from, "path"));
        const char *id = json_string_value(json_object_get(from, "build_id"));
        image *file = path && id && !strstr(path, ".so") != libraries ? image_of(s, path, id) : NULL;
        if (!file || file->tokens == s->count) continue;
        file->tokens = s->count;
        s->records = true;
        hkr_code_types(path, id, each_type, s);
        s->records = false;
        hkr_code_types(path, id, each_type, s);
    }
}

bool hkr_tokens(json_t *context)
{
    const json_t *images = json_object_get(context, "images");
    search *s = &found_so_far;
    bool changed = false;
    each_array(s, context, false, &changed);
    if (s->count == 0) return false;
    find_names(s, images, false);
    find_names(s, images, true);
    each_array(s, context, true, &changed);
    return changed;
}
