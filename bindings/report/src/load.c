#include "check.h"
#include "machine.h"
#include "report.h"
#include "tokens.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "hakmem-report/"
#define VERSION "1"
#ifdef _WIN32
#define READ "rb"
#else
#define READ "rbe"
#endif

/* ---- The file ------------------------------------------------------------------------------------ */

/* Whether it may be one, by its beginning. */
static bool begins_as_object(const hkr_report *r)
{
    const char *at = r->text, *end = at + r->size;
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    return at == end || *at == '{';
}

/* What is none is not read to its end, which a device does not have. */
static bool read_all(hkr_report *r, FILE *in, size_t most, char *error)
{
    enum { BEGINNING = 1 << 20 };
    for (size_t room = 0;;) {
        if (room - r->size < 2) {
            room = room ? 2 * room : 1 << 16;
            char *larger = realloc(r->text, room);
            if (!larger) return hkr_fail(error, "%s: out of memory", r->path);
            r->text = larger;
        }
        size_t n = fread(r->text + r->size, 1, room - r->size - 1, in);
        r->size += n;
        if (r->size > most) return hkr_fail(error, "%s: more than %zu bytes", r->path, most);
        if (r->size >= BEGINNING && !begins_as_object(r))
            return hkr_fail(error, "%s: not a report of hakmem", r->path);
        if (n > 0) continue;
        if (!ferror(in) || errno != EINTR) break;
        clearerr(in); /* a signal, as where a window changes its size */
    }
    r->text[r->size] = '\0';
    return ferror(in) ? hkr_fail(error, "%s: %s", r->path, strerror(errno)) : true;
}

static bool read_file(hkr_report *r, char *error)
{
    FILE *in = strcmp(r->path, "-") == 0 ? stdin : fopen(r->path, READ);
    if (!in) return hkr_fail(error, "%s: %s", r->path, strerror(errno));
    bool ok = read_all(r, in, SIZE_MAX, error);
    if (in != stdin) fclose(in);
    return ok;
}

/* ---- Its parts ----------------------------------------------------------------------------------- */

static bool own(hkr_report *r, void *p)
{
    const size_t n = r->owned_count;
    if (p && (n & (n - 1)) == 0) { /* there is room for a power of two */
        void **larger = realloc(r->owned, (n > 0 ? 2 * n : 1) * sizeof *larger);
        if (larger) r->owned = larger;
        else {
            free(p);
            p = NULL;
        }
    }
    if (p) r->owned[r->owned_count++] = p;
    return p;
}

static void *room_for(hkr_report *r, size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    return own(r, p) ? p : NULL;
}

/* A member that may be missing, but not be of another type. */
static bool member(const json_t *object, const char *key, json_type type, const json_t **out)
{
    *out = json_object_get(object, key);
    return !*out || json_typeof(*out) == type;
}

/* A text that may be missing, but not be of another type. */
static bool text_of(const json_t *object, const char *key, const char **out)
{
    const json_t *value = json_object_get(object, key);
    *out = value ? json_string_value(value) : "";
    return *out;
}

/* The same for an amount. */
static bool amount_of(const json_t *object, const char *key, double *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    return !value || (hkr_is_amount(value) && *out < 1e18);
}

/* Where machine code is. What does not fit is not known. */
static void find_address(hkr_frame *f, const json_t *from, const json_t *images)
{
    const json_t *number = json_object_get(from, "image");
    const double image = json_number_value(number),
                 address = json_number_value(json_object_get(from, "address"));
    f->build_id = "";
    if (!f->native || !json_is_number(number) || !(image >= 0 && image < (double)json_array_size(images)))
        return;
    if (address >= 1 && address < (double)(UINT64_C(1) << 40)) f->address = (uint64_t)address;
    f->build_id = hkr_text(json_array_get(images, (size_t)image), "build_id");
}

static bool frames_of(hkr_report *r, hkr_context *c, const json_t *array, const json_t *images)
{
    c->frame_count = json_array_size(array);
    c->frames = room_for(r, c->frame_count, sizeof *c->frames);
    if (!c->frames) return false;
    for (size_t i = 0; i < c->frame_count; i++) {
        const json_t *from = json_array_get(array, i);
        hkr_frame *f = &c->frames[i];
        double line;
        if (!json_is_string(json_object_get(from, "function"))) return false;
        f->function = hkr_text(from, "function");
        if (!text_of(from, "file", &f->file) || !text_of(from, "module", &f->module)) return false;
        if (!amount_of(from, "line", &line)) return false;
        f->line = line >= 1 && line < 1e9 ? (int)line : 0;
        f->native = strcmp(hkr_text(from, "kind"), "native") == 0;
        find_address(f, from, images);
    }
    return true;
}

static bool numbers_of(hkr_report *r, const hkr_context *c, const json_t *array, hkr_stack *s)
{
    s->depth = json_array_size(array);
    uint32_t *numbers = s->depth <= HKR_DEPTH ? room_for(r, s->depth, sizeof *numbers) : NULL;
    if (!numbers || !json_is_array(array)) return false;
    for (size_t i = 0; i < s->depth; i++) {
        const json_t *number = json_array_get(array, i);
        const double n = json_number_value(number);
        if (!json_is_number(number) || n < 0 || n >= (double)c->frame_count || n != floor(n)) return false;
        numbers[i] = (uint32_t)n;
    }
    s->frames = numbers;
    return true;
}

static bool stacks_of(hkr_report *r, hkr_context *c, const json_t *array)
{
    static const char *const names[HKR_VALUES] = {"alloc_blocks", "alloc_bytes", "live_blocks",
                                                  "live_bytes",   "peak_blocks", "peak_bytes"};
    c->stack_count = json_array_size(array);
    c->stacks = room_for(r, c->stack_count, sizeof *c->stacks);
    if (!c->stacks) return false;
    for (size_t i = 0; i < c->stack_count; i++) {
        const json_t *from = json_array_get(array, i);
        hkr_stack *s = &c->stacks[i];
        if (!numbers_of(r, c, json_object_get(from, "frames"), s)) return false;
        if (!json_is_number(json_object_get(from, "live_bytes"))) return false;
        if (!json_is_number(json_object_get(from, "live_blocks"))) return false;
        const json_t *id = json_object_get(from, "id");
        if (id && !hkr_is_amount(id)) return false;
        s->id = json_number_value(id);
        if (!text_of(from, "label", &s->label) || !text_of(from, "thread", &s->thread)) return false;
        if (!*s->label) s->label = "unlabelled";
        if (!amount_of(from, "alloc_bytes_error", &s->alloc_error)) return false;
        if (!amount_of(from, "live_bytes_error", &s->live_error)) return false;
        if (!amount_of(from, "peak_bytes_error", &s->peak_error)) return false;
        if (!amount_of(from, "pinned_bytes", &s->pinned)) return false;
        if (!amount_of(from, "reused_bytes", &s->reused)) return false;
        for (int v = 0; v < HKR_VALUES; v++)
            if (!amount_of(from, names[v], &s->value[v])) return false;
    }
    return true;
}

/* For verdicts and histories, each of which names a stack. */
static bool places_of(hkr_context *c)
{
    char key[32];
    if (json_array_size(c->verdicts) + json_array_size(c->histories) == 0) return true;
    bool ok = (c->places = json_object());
    for (size_t i = c->stack_count; i-- > 0 && ok;) /* the first one stays */
        ok = json_object_set_new_nocheck(c->places, hkr_key(key, c->stacks[i].id),
                                         json_integer((json_int_t)i)) == 0;
    return ok;
}

static bool name_of(hkr_report *r, hkr_context *c, json_t *names, const json_t *from)
{
    const char *name;
    if (!text_of(from, "name", &name)) return false;
    char *unique = hkr_unique(names, name);
    c->name = unique;
    return unique && own(r, unique);
}

/* The name of the part that is wrong, maybe in `text`; NULL = none. */
static const char *context_of(hkr_report *r, hkr_context *c, json_t *names, json_t *from, char *text,
                              size_t size)
{
    const json_t *stacks, *frames;
    if (!json_is_object(from)) return "a context";
    r->changed |= hkr_machine(from, &r->names);
    r->changed |= hkr_tokens(from);
    if (!name_of(r, c, names, from)) return "name";
    if (!member(from, "stats", JSON_OBJECT, &c->stats)) return "stats";
    if (!member(from, "linear", JSON_OBJECT, &c->linear)) return "linear";
    if (!member(from, "labels", JSON_ARRAY, &c->labels)) return "labels";
    if (!member(from, "holes", JSON_ARRAY, &c->holes)) return "holes";
    if (!member(from, "imports", JSON_ARRAY, &c->imports)) return "imports";
    if (!member(from, "marks", JSON_ARRAY, &c->marks)) return "marks";
    if (!member(from, "histories", JSON_ARRAY, &c->histories)) return "histories";
    if (!text_of(from, "reused", &c->reused)) return "reused";
    if (!member(from, "profile", JSON_OBJECT, &c->profile)) return "profile";
    if (!member(from, "verdicts", JSON_ARRAY, &c->verdicts)) return "verdicts";
    if (!member(from, "frames", JSON_ARRAY, &frames) ||
        !frames_of(r, c, frames, json_object_get(from, "images")))
        return "frames";
    if (!member(from, "stacks", JSON_ARRAY, &stacks) || !stacks_of(r, c, stacks)) return "stacks";
    if (!places_of(c)) return "verdicts";
    if (!hkr_find_wrappers(c)) return "stacks";
    return hkr_check_context(from, c, text, size) ? NULL : text;
}

static bool contexts_of(hkr_report *r, const json_t *array, char *error)
{
    const size_t count = json_array_size(array);
    char text[128];
    const char *wrong = NULL;
    json_t *names = json_object();
    r->contexts = calloc(count + 1, sizeof *r->contexts);
    if (!r->contexts || !names) {
        json_decref(names);
        return hkr_fail(error, "%s: out of memory", r->path);
    }
    for (size_t i = 0; i < count && !wrong; i++) {
        r->context_count++;
        wrong = context_of(r, &r->contexts[i], names, json_array_get(array, i), text, sizeof text);
    }
    json_decref(names);
    return wrong ? hkr_fail(error, "%s: a broken report: %s of context %zu", r->path, wrong, r->context_count)
                 : true;
}

/* As hakmem writes them: the version is at the start. */
static bool begins_as_report(const hkr_report *r)
{
    enum { HEAD = 64 };
    char head[HEAD + 1];
    const size_t n = r->size < HEAD ? r->size : HEAD;
    memcpy(head, r->text, n);
    head[n] = '\0';
    return head[strspn(head, " \t\r\n")] == '{' && strstr(head, "\"" SCHEMA);
}

/* Only a whole one ends with its brace; who cuts at another one is found by the parser. */
static bool is_cut(const hkr_report *r, enum json_error_code code)
{
    size_t n = r->size;
    while (n > 0 && strchr(" \t\r\n", r->text[n - 1]))
        n--;
    return code == json_error_premature_end_of_input ||
           (code != json_error_end_of_input_expected && n > 0 && r->text[n - 1] != '}');
}

static bool fail_unread(const hkr_report *r, const json_error_t *why, char *error)
{
    if (r->size == 0) return hkr_fail(error, "%s: not a report of hakmem: it is empty", r->path);
    if (!begins_as_report(r))
        return hkr_fail(error, "%s: not a report of hakmem: line %d: %s", r->path, why->line, why->text);
    if (is_cut(r, json_error_code(why)))
        return hkr_fail(error, "%s: a report that is cut off: it ends in the middle of line %d", r->path,
                        why->line);
    return hkr_fail(error, "%s: a broken report: line %d: %s", r->path, why->line, why->text);
}

static bool fail_version(const hkr_report *r, const json_t *schema, char *error)
{
    const char *text = json_string_value(schema);
    if (!schema) return hkr_fail(error, "%s: not a report of hakmem: it has no \"schema\"", r->path);
    if (!text || strncmp(text, SCHEMA, strlen(SCHEMA)) != 0)
        return hkr_fail(error, "%s: not a report of hakmem: its \"schema\" is not " SCHEMA "%s", r->path,
                        VERSION);
    return hkr_fail(
        error, "%s: a report of another version: it is " SCHEMA "%.20s, and this hakmem reads " SCHEMA "%s",
        r->path, text + strlen(SCHEMA), VERSION);
}

static bool parse(hkr_report *r, char *error)
{
    json_error_t why;
    char text[128];
    /* As real numbers: sizes may be above INT64_MAX. */
    r->root = json_loadb(r->text, r->size, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &why);
    if (!r->root) return fail_unread(r, &why, error);
    const json_t *schema = json_object_get(r->root, "schema"), *contexts;
    if (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA VERSION) != 0)
        return fail_version(r, schema, error);
    if (!member(r->root, "process", JSON_OBJECT, &r->process) ||
        !member(r->root, "memory", JSON_OBJECT, &r->memory) ||
        !member(r->root, "contexts", JSON_ARRAY, &contexts) || !contexts || !r->process)
        return hkr_fail(error,
                        "%s: a broken report: process, memory or contexts is missing, or of another type",
                        r->path);
    if (!hkr_check_process(r->process, text, sizeof text) || !hkr_check_memory(r->memory, text, sizeof text))
        return hkr_fail(error, "%s: a broken report: %s", r->path, text);
    return contexts_of(r, contexts, error);
}

static hkr_report *report_new(const char *path, char *error)
{
    hkr_report *r = calloc(1, sizeof *r);
    if (r) r->path = path;
    else hkr_fail(error, "%s: out of memory", path);
    return r;
}

hkr_report *hkr_load(const char *path, char *error)
{
    hkr_report *r = report_new(path, error);
    if (r && read_file(r, error) && parse(r, error)) return r;
    hkr_free(r);
    return NULL;
}

hkr_report *hkr_load_stream(FILE *in, size_t most, const char *path, char *error)
{
    hkr_report *r = report_new(path, error);
    if (r && read_all(r, in, most, error) && parse(r, error)) return r;
    hkr_free(r);
    return NULL;
}

void hkr_free(hkr_report *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->owned_count; i++)
        free(r->owned[i]);
    free(r->owned);
    for (size_t i = 0; i < r->context_count; i++)
        json_decref(r->contexts[i].places);
    free(r->contexts);
    json_decref(r->root);
    free(r->text);
    free(r);
}
