#include "machine.h"

#include "lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 1000 };

/* ---- Names ----------------------------------------------------------------------------------------- */

static void put_text(json_t *frame, const char *key, const char *text)
{
    json_object_set_new(frame, key, json_string(text)); /* no UTF-8: nothing happens */
}

/* What the name has behind it was made by the compiler: `.constprop.0`, `@@GLIBC_2.2`. */
static bool demangle(hkr_names *names, json_t *frame)
{
    const char *name = json_string_value(json_object_get(frame, "function"));
    const char *plain = name ? hkr_plain_name(names, name) : NULL;
    if (!plain) return false;
    put_text(frame, "function", plain);
    return true;
}

/* ---- Lines ----------------------------------------------------------------------------------------- */

/* A frame, and those of the functions that were inlined where it is, the innermost first. */
typedef struct expansion {
    json_t *extra; /* an array of places; NULL = none */
} expansion;

static void put_line(json_t *frame, const hkr_code_line *line)
{
    if (line->file) put_text(frame, "file", line->file);
    if (line->file && line->line > 0) json_object_set_new(frame, "line", json_integer(line->line));
}

static json_t *inlined_frame(hkr_names *names, const json_t *frame, const hkr_code_line *line)
{
    json_t *made = json_object();
    json_t *module = json_object_get(frame, "module");
    put_text(made, "function", line->function ? line->function : "(inlined)");
    put_line(made, line);
    if (module) json_object_set(made, "module", module);
    put_text(made, "kind", "native");
    demangle(names, made);
    return made;
}

static bool find_lines(hkr_names *names, json_t *frames, size_t at, const json_t *images, expansion *e)
{
    hkr_code_line lines[HKR_INLINED];
    json_t *frame = json_array_get(frames, at);
    const json_t *number = json_object_get(frame, "image");
    const double image = json_number_value(number);
    const double address = json_number_value(json_object_get(frame, "address"));
    if (!json_is_number(number) || !(image >= 0 && image < (double)json_array_size(images)) ||
        !(address >= 1 && address < 9e15))
        return false;
    const json_t *of = json_array_get(images, (size_t)image);
    const char *path = json_string_value(json_object_get(of, "path"));
    const char *id = json_string_value(json_object_get(of, "build_id"));
    const size_t count = path && id ? hkr_code_lines(path, id, (uint64_t)address - 1, lines) : 0;
    if (count == 0) return false;
    for (size_t i = 0; i + 1 < count; i++) {
        if (!e->extra) e->extra = json_array();
        json_array_append_new(e->extra, json_integer((json_int_t)json_array_size(frames)));
        json_array_append_new(frames, inlined_frame(names, frame, &lines[i]));
    }
    put_line(frame, &lines[count - 1]);
    return true;
}

/* The numbers of a stack with those of inlined functions. */
static void expand(json_t *stack, const expansion *all, size_t count)
{
    const json_t *numbers = json_object_get(stack, "frames");
    json_t *more = json_array();
    bool any = false;
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        json_t *number = json_array_get(numbers, i);
        const double n = json_number_value(number);
        const json_t *extra = n >= 0 && n < (double)count ? all[(size_t)n].extra : NULL;
        const size_t left = json_array_size(numbers) - i;
        if (extra && json_array_size(more) + json_array_size(extra) + left <= DEPTH_MOST) {
            json_array_extend(more, (json_t *)(uintptr_t)extra);
            any = true;
        }
        json_array_append(more, number);
    }
    if (any) json_object_set(stack, "frames", more);
    json_decref(more);
}

bool hkr_machine(json_t *context, hkr_names *names)
{
    json_t *frames = json_object_get(context, "frames"), *stacks = json_object_get(context, "stacks");
    const json_t *images = json_object_get(context, "images");
    const size_t count = json_array_size(frames);
    bool changed = false, any = false;
    expansion *all = count > 0 ? calloc(count, sizeof *all) : NULL;
    for (size_t i = 0; all && i < count; i++) {
        json_t *frame = json_array_get(frames, i);
        const char *kind = json_string_value(json_object_get(frame, "kind"));
        if (!kind || strcmp(kind, "native") != 0) continue;
        changed |= demangle(names, frame);
        changed |= find_lines(names, frames, i, images, &all[i]);
        any |= all[i].extra != NULL;
    }
    for (size_t i = 0; any && i < json_array_size(stacks); i++)
        expand(json_array_get(stacks, i), all, count);
    for (size_t i = 0; all && i < count; i++)
        json_decref(all[i].extra);
    free(all);
    return changed;
}
