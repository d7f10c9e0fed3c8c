/* pprof's profile, gzipped. Messages of protobuf that stand one behind the other are one: each sample,
 * location and function is packed and compressed for itself, and no profile as a whole is in memory. */
#include "pprof.pb-c.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

typedef struct writer {
    gzFile out;
    json_t *texts, *functions, *mappings; /* their numbers */
    const char *runtime;                  /* of the report that is written */
    bool ok;
} writer;

static void pack(writer *w, const Hkr__Pprof__Profile *part)
{
    uint8_t few[4096], *bytes = few;
    const size_t n = hkr__pprof__profile__get_packed_size(part);
    if (n > sizeof few && !(bytes = malloc(n))) w->ok = false;
    if (!w->ok || n == 0) return;
    hkr__pprof__profile__pack(part, bytes);
    if (gzwrite(w->out, bytes, (unsigned)n) != (int)n) w->ok = false;
    if (bytes != few) free(bytes);
}

/* The number of a key in a table, from `first`; *is_new says that it was not there. */
static int64_t number(writer *w, json_t *table, const char *key, int64_t first, bool *is_new)
{
    json_t *there = json_object_get(table, key);
    *is_new = !there;
    if (there) return json_integer_value(there);
    const int64_t n = (int64_t)json_object_size(table) + first;
    if (json_object_set_new_nocheck(table, key, json_integer(n)) != 0) w->ok = false;
    return n;
}

static int64_t text(writer *w, const char *value)
{
    bool is_new;
    const int64_t n = number(w, w->texts, value, 0, &is_new);
    if (is_new) {
        char *one = (char *)(uintptr_t)value;
        Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
        part.n_string_table = 1;
        part.string_table = &one;
        pack(w, &part);
    }
    return n;
}

static uint64_t function(writer *w, const hkr_frame *f)
{
    const char *file = *f->file ? f->file : f->module;
    const size_t size = strlen(f->function) + strlen(file) + 2;
    char *key = malloc(size);
    if (!key) {
        w->ok = false;
        return 0;
    }
    snprintf(key, size, "%s\n%s", f->function, file);
    bool is_new;
    const uint64_t id = (uint64_t)number(w, w->functions, key, 1, &is_new);
    free(key);
    if (!is_new) return id;
    Hkr__Pprof__Function function = HKR__PPROF__FUNCTION__INIT, *one = &function;
    function.id = id;
    function.name = function.system_name = text(w, f->function);
    function.filename = text(w, file);
    Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
    part.n_function = 1;
    part.function = &one;
    pack(w, &part);
    return id;
}

/* Addresses in a report count from the beginning of their image, wherever it was loaded: each image gets a range
 * of its own. */
enum { RANGE_SHIFT = 40 };

/* What has no image, as an interpreter's frames, gets one mapping for each runtime: some readers take no location
 * without. */
static uint64_t mapping(writer *w, const hkr_frame *f)
{
    char runtime[128];
    bool is_new;
    snprintf(runtime, sizeof runtime, "[%s]", *w->runtime ? w->runtime : "code");
    const char *name = f->native && *f->module ? f->module : runtime;
    const uint64_t id = (uint64_t)number(w, w->mappings, name, 1, &is_new);
    if (!is_new) return id;
    Hkr__Pprof__Mapping mapping = HKR__PPROF__MAPPING__INIT, *one = &mapping;
    mapping.id = id;
    mapping.memory_start = id << RANGE_SHIFT;
    mapping.memory_limit = (id + 1) << RANGE_SHIFT;
    mapping.filename = text(w, name);
    mapping.build_id = text(w, f->build_id);
    /* Nothing is left for pprof to look up. */
    mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = mapping.has_inline_frames = 1;
    Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
    part.n_mapping = 1;
    part.mapping = &one;
    pack(w, &part);
    return id;
}

static bool is_module(const hkr_frame *f, const char *name)
{
    const char *slash = strrchr(f->module, '/');
    return f->native && *f->module && strcmp(slash ? slash + 1 : f->module, name) == 0;
}

/* The module that is called as the command; else the one that the first stack begins in. NULL = none. */
static const hkr_frame *program(const hkr_report *r)
{
    const char *command = json_string_value(json_array_get(json_object_get(r->process, "command"), 0));
    const char *slash = command ? strrchr(command, '/') : NULL, *name = slash ? slash + 1 : command;
    const hkr_frame *outermost = NULL;
    for (size_t i = 0; i < r->context_count; i++) {
        const hkr_context *c = &r->contexts[i];
        for (size_t f = 0; name && f < c->frame_count; f++)
            if (is_module(&c->frames[f], name)) return &c->frames[f];
        for (size_t s = 0; s < c->stack_count && !outermost; s++) {
            const hkr_stack *stack = &c->stacks[s];
            if (stack->depth > 0) outermost = &c->frames[stack->frames[stack->depth - 1]];
        }
    }
    return outermost;
}

static void location(writer *w, const hkr_frame *f, uint64_t id)
{
    Hkr__Pprof__Line line = HKR__PPROF__LINE__INIT, *one_line = &line;
    line.function_id = function(w, f);
    line.line = f->line;
    Hkr__Pprof__Location location = HKR__PPROF__LOCATION__INIT, *one = &location;
    location.id = id;
    location.mapping_id = mapping(w, f);
    if (f->address != 0) location.address = (location.mapping_id << RANGE_SHIFT) + f->address;
    location.n_line = 1;
    location.line = &one_line;
    Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
    part.n_location = 1;
    part.location = &one;
    pack(w, &part);
}

static void sample(writer *w, const hkr_context *c, const hkr_stack *s, uint64_t base)
{
    uint64_t ids[HKR_DEPTH];
    int64_t values[4] = {llround(s->value[HKR_ALLOC_BLOCKS]), llround(s->value[HKR_ALLOC_BYTES]),
                         llround(s->value[HKR_LIVE_BLOCKS]), llround(s->value[HKR_LIVE_BYTES])};
    for (size_t i = 0; i < s->depth; i++)
        ids[i] = base + s->frames[i];
    Hkr__Pprof__Label labels[3], *pointers[3];
    const char *const texts[3][2] = {{"label", s->label}, {"context", c->name}, {"thread", s->thread}};
    size_t label_count = 0;
    for (int i = 0; i < 3; i++) {
        if (!*texts[i][1]) continue;
        hkr__pprof__label__init(&labels[label_count]);
        labels[label_count].key = text(w, texts[i][0]);
        labels[label_count].str = text(w, texts[i][1]);
        pointers[label_count] = &labels[label_count];
        label_count++;
    }
    Hkr__Pprof__Sample sample = HKR__PPROF__SAMPLE__INIT, *one = &sample;
    sample.n_location_id = s->depth;
    sample.location_id = ids;
    sample.n_value = 4;
    sample.value = values;
    sample.n_label = label_count;
    sample.label = pointers;
    Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
    part.n_sample = 1;
    part.sample = &one;
    pack(w, &part);
}

static void head(writer *w, const hkr_report *r, hkr_value by)
{
    static const char *const names[4] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};
    text(w, ""); /* the format's first */
    Hkr__Pprof__ValueType types[5], *pointers[4];
    for (int i = 0; i < 4; i++) {
        hkr__pprof__value_type__init(&types[i]);
        types[i].type = text(w, names[i]);
        types[i].unit = text(w, i % 2 ? "bytes" : "count");
        pointers[i] = &types[i];
    }
    hkr__pprof__value_type__init(&types[4]);
    types[4].type = text(w, "space");
    types[4].unit = text(w, "bytes");
    double mean = 0;
    for (size_t i = 0; i < r->context_count; i++)
        if (hkr_number(r->contexts[i].profile, "mean_bytes") > mean)
            mean = hkr_number(r->contexts[i].profile, "mean_bytes");
    Hkr__Pprof__Profile part = HKR__PPROF__PROFILE__INIT;
    part.n_sample_type = 4;
    part.sample_type = pointers;
    part.period_type = &types[4];
    part.period = mean < 1e18 ? llround(mean) : 0;
    const double seconds = hkr_number(r->process, "time");
    part.time_nanos = seconds > 0 && seconds < 9e9 ? llround(seconds) * 1000000000 : 0;
    part.default_sample_type = types[by == HKR_ALLOC_BYTES ? 1 : 3].type;
    pack(w, &part);
}

static const char *runtime_of(const hkr_report *r)
{
    return hkr_text(json_object_get(r->process, "runtime"), "name");
}

bool hkr_write_pprof(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    const int fd = fflush(out) == 0 ? dup(fileno(out)) : -1;
    writer w = {.out = fd >= 0 ? gzdopen(fd, "wb") : NULL,
                .texts = json_object(),
                .runtime = "",
                .functions = json_object(),
                .mappings = json_object()};
    if (!w.out && fd >= 0) close(fd);
    w.ok = w.out && w.texts && w.functions && w.mappings;
    uint64_t base = 1;
    if (w.ok) head(&w, reports[0], o->by);
    /* The first mapping is the main program for pprof. */
    w.runtime = runtime_of(reports[0]);
    const hkr_frame *main_frame = w.ok ? program(reports[0]) : NULL;
    if (main_frame) mapping(&w, main_frame);
    for (size_t r = 0; r < count && w.ok; r++)
        for (size_t i = 0; i < reports[r]->context_count && w.ok; i++) {
            w.runtime = runtime_of(reports[r]);
            const hkr_context *c = &reports[r]->contexts[i];
            for (size_t f = 0; f < c->frame_count && w.ok; f++)
                location(&w, &c->frames[f], base + f);
            for (size_t s = 0; s < c->stack_count && w.ok; s++)
                sample(&w, c, &c->stacks[s], base);
            base += c->frame_count;
        }
    if (w.out && gzclose(w.out) != Z_OK) w.ok = false;
    json_decref(w.texts);
    json_decref(w.functions);
    json_decref(w.mappings);
    return w.ok;
}
