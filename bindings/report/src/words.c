#include "report.h"

#include "common/control.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

size_t hkr_control(const char *at)
{
    return *at ? hkc_control(at, 2) : 0;
}

void hkr_clean(char *text, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++) {
        const size_t control = hkr_control(from + n);
        text[n] = control ? '?' : from[n];
        if (control == 2 && n + 2 < size) text[++n] = '?';
    }
    /* Not in the middle of a character. */
    if (from[n])
        while (n > 0 && ((unsigned char)from[n] & 0xC0) == 0x80)
            n--;
    text[n] = '\0';
}

bool hkr_fail(char *error, const char *format, ...)
{
    char text[HKR_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hkr_clean(error, HKR_ERROR, text);
    return false;
}

void hkr_frame_text(char *text, size_t size, const hkr_frame *f)
{
    char whole[1024], function[501], place[501];
    const char *slash = strrchr(f->module, '/'), *module = slash ? slash + 1 : f->module;
    if (!*f->file && !*f->module) {
        hkr_clean(text, size, f->function);
        return;
    }
    hkr_clean(function, sizeof function, f->function);
    hkr_clean(place, sizeof place, *f->file ? f->file : module);
    if (*f->file && f->line) snprintf(whole, sizeof whole, "%s (%s:%d)", function, place, f->line);
    else snprintf(whole, sizeof whole, *f->file ? "%s (%s)" : "%s [%s]", function, place);
    hkr_clean(text, size, whole);
}

char *hkr_unique(json_t *names, const char *name)
{
    const size_t size = strlen(name) + 24;
    char *unique = malloc(size);
    if (!unique) return NULL;
    snprintf(unique, size, "%s", name);
    json_t *taken = json_object_get(names, name);
    json_int_t last = json_integer_value(taken);
    while (json_object_get(names, unique))
        snprintf(unique, size, "%s#%lld", name, (long long)++last);
    if (taken) json_integer_set(taken, last);
    if (json_object_set_new_nocheck(names, unique, json_integer(1)) == 0) return unique;
    free(unique);
    return NULL;
}

const char *hkr_bytes(char text[32], double bytes, bool sign)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    const char *format = sign ? "%+.2f %s" : "%.2f %s";
    if (fabs(bytes) < 1024) {
        snprintf(text, 32, sign ? "%+.0f B" : "%.0f B", bytes);
        return text;
    }
    int unit = 0;
    for (bytes /= 1024; fabs(bytes) >= 1024 && unit < 3; unit++)
        bytes /= 1024;
    snprintf(text, 32, format, bytes, units[unit]);
    return text;
}

double hkr_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

const char *hkr_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

const char *hkr_key(char key[32], double number)
{
    snprintf(key, 32, "%.17g", number);
    return key;
}

double hkr_total(const hkr_report *r, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < r->context_count; i++)
        sum += hkr_number(r->contexts[i].stats, name);
    return sum;
}

void *hkr_row(hkr_rows *r, const char *key)
{
    const json_t *place = json_object_get(r->table, key);
    if (place) return (char *)r->at + (size_t)json_integer_value(place) * r->size;
    if (r->count == r->room) {
        const size_t room = r->room ? 2 * r->room : 256;
        void *larger = realloc(r->at, room * r->size);
        if (!larger) return NULL;
        r->at = larger;
        r->room = room;
    }
    if (json_object_set_new_nocheck(r->table, key, json_integer((json_int_t)r->count)) != 0) return NULL;
    return memset((char *)r->at + r->count++ * r->size, 0, r->size);
}

void hkr_command(char *text, size_t size, const hkr_report *r, size_t words, size_t each)
{
    const json_t *command = json_object_get(r->process, "command");
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < json_array_size(command) && i < words && used + 1 < size; i++) {
        if (i > 0) text[used++] = ' ';
        const char *word = json_string_value(json_array_get(command, i));
        hkr_clean(text + used, each < size - used ? each : size - used, word);
        used += strlen(text + used);
    }
}

const hkr_stack *hkr_stack_of(const hkr_context *c, double id)
{
    char key[32];
    const json_t *place = json_object_get(c->places, hkr_key(key, id));
    return place ? &c->stacks[(size_t)json_integer_value(place)] : NULL;
}

size_t hkr_stacks(hkr_report *const *reports, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < reports[i]->context_count; c++)
            n += reports[i]->contexts[c].stack_count;
    return n;
}
