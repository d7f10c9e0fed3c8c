/* Stacks as flamegraph.pl and inferno read them: frames from the outermost on, the label as the last, a
 * number. */
#include "report.h"

#include <math.h>

static void put_frame(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++)
        fputc(*c == ';' ? ':' : *c, out);
}

bool hkr_write_folded(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    char text[1024];
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < reports[r]->context_count; i++) {
            const hkr_context *c = &reports[r]->contexts[i];
            for (size_t s = 0; s < c->stack_count; s++) {
                const hkr_stack *stack = &c->stacks[s];
                const double value = round(stack->value[o->by]);
                if (value < 1) continue;
                if (reports[r]->context_count > 1) {
                    hkr_clean(text, sizeof text, c->name);
                    put_frame(out, text);
                    fputc(';', out);
                }
                for (size_t f = stack->depth; f-- > 0;) {
                    hkr_frame_text(text, sizeof text, &c->frames[stack->frames[f]]);
                    put_frame(out, text);
                    fputc(';', out);
                }
                hkr_clean(text, sizeof text, stack->label);
                fputc('[', out);
                put_frame(out, text);
                fprintf(out, "] %.0f\n", value);
            }
        }
    }
    return !ferror(out);
}
