/* One file with three profiles: live, at the peak, allocated. */
#include "common/json.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int put(void *to, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, to) == n ? 0 : EIO;
}

static void frames(hkc_json *w, const hkr_context *c)
{
    for (size_t i = 0; i < c->frame_count; i++) {
        const hkr_frame *f = &c->frames[i];
        hkc_json_object(w, NULL);
        hkc_json_text(w, "name", f->function);
        if (*f->file) hkc_json_text(w, "file", f->file);
        else if (*f->module) hkc_json_text(w, "file", f->module);
        if (f->line) hkc_json_integer(w, "line", f->line);
        hkc_json_end(w);
    }
}

/* Labels are frames, too, behind all others: one for each stack whose label the one before it has not. */
static bool new_label(const hkr_context *c, size_t s)
{
    return s == 0 || strcmp(c->stacks[s].label, c->stacks[s - 1].label) != 0;
}

static void profile(hkc_json *w, hkr_report *const *reports, size_t count, const char *name, hkr_value by)
{
    double total = 0;
    hkc_json_object(w, NULL);
    hkc_json_text(w, "type", "sampled");
    hkc_json_text(w, "name", name);
    hkc_json_text(w, "unit", "bytes");
    hkc_json_array(w, "samples");
    size_t base = 0;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < reports[r]->context_count; i++) {
            const hkr_context *c = &reports[r]->contexts[i];
            size_t label = base + c->frame_count;
            for (size_t s = 0; s < c->stack_count; s++) {
                label += new_label(c, s);
                hkc_json_array(w, NULL);
                for (size_t f = c->stacks[s].depth; f-- > 0;)
                    hkc_json_size(w, NULL, base + c->stacks[s].frames[f]);
                hkc_json_size(w, NULL, label - 1);
                hkc_json_end(w);
            }
            base = label;
        }
    hkc_json_end(w);
    hkc_json_array(w, "weights");
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < reports[r]->context_count; i++)
            for (size_t s = 0; s < reports[r]->contexts[i].stack_count; s++) {
                const double value = round(reports[r]->contexts[i].stacks[s].value[by]);
                hkc_json_number(w, NULL, value);
                total += value;
            }
    hkc_json_end(w);
    hkc_json_integer(w, "startValue", 0);
    hkc_json_number(w, "endValue", total);
    hkc_json_end(w);
}

bool hkr_write_speedscope(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    hkc_json w;
    hkc_json_open(&w, put, out);
    hkc_json_object(&w, NULL);
    hkc_json_text(&w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    hkc_json_text(&w, "exporter", "hakmem");
    hkc_json_integer(&w, "activeProfileIndex", o->by == HKR_LIVE_BYTES ? 0 : o->by == HKR_PEAK_BYTES ? 1 : 2);
    hkc_json_object(&w, "shared");
    hkc_json_array(&w, "frames");
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < reports[r]->context_count; i++) {
            const hkr_context *c = &reports[r]->contexts[i];
            frames(&w, c);
            for (size_t s = 0; s < c->stack_count; s++) {
                if (!new_label(c, s)) continue;
                hkc_json_object(&w, NULL);
                hkc_json_text(&w, "name", c->stacks[s].label);
                hkc_json_text(&w, "file", "label");
                hkc_json_end(&w);
            }
        }
    hkc_json_end(&w);
    hkc_json_end(&w);
    hkc_json_array(&w, "profiles");
    profile(&w, reports, count, "live", HKR_LIVE_BYTES);
    profile(&w, reports, count, "at the peak", HKR_PEAK_BYTES);
    profile(&w, reports, count, "allocated", HKR_ALLOC_BYTES);
    hkc_json_end(&w);
    hkc_json_end(&w);
    return hkc_json_close(&w) == 0;
}
