#include "window_table.h"

size_t hkr_window_times(const hkr_report *r, size_t most, double times[HKR_WINDOWS])
{
    const hkr_context *widest = NULL;
    for (size_t i = 0; i < r->context_count; i++) {
        const hkr_context *c = &r->contexts[i];
        if (json_array_size(c->histories) == 0) continue;
        if (!widest || json_array_size(c->marks) > json_array_size(widest->marks)) widest = c;
    }
    const size_t all = widest ? json_array_size(widest->marks) : 0;
    if (most > HKR_WINDOWS) most = HKR_WINDOWS;
    const size_t count = all < most ? all : most;
    for (size_t i = 0; i < count; i++) {
        const size_t at = count > 1 ? i * (all - 1) / (count - 1) : all - 1;
        times[i] = hkr_number(json_array_get(widest->marks, at), "at_ns");
    }
    return count;
}

double hkr_window_live(const hkr_context *c, const json_t *history, double time)
{
    const json_t *live = json_object_get(history, "live");
    size_t i = json_array_size(c->marks);
    while (i > 0 && hkr_number(json_array_get(c->marks, i - 1), "at_ns") > time)
        i--;
    return i > 0 ? json_number_value(json_array_get(live, i - 1)) : 0;
}

const char *hkr_window_age(char text[16], const hkr_report *r, double time)
{
    static const struct {
        double seconds, most; /* of the unit; up to so many seconds */
        const char *name;
    } units[] = {{1, 120, "s"}, {60, 7200, "min"}, {3600, 172800, "h"}, {86400, 1e18, "d"}};
    double ago = (hkr_number(r->process, "now_ns") - time) / 1e9;
    size_t unit = 0;
    if (!(ago > 0)) ago = 0;
    while (ago >= units[unit].most && unit < 3)
        unit++;
    ago /= units[unit].seconds;
    const int digits = unit == 0 && ago < 10; /* of windows that are shorter than seconds */
    snprintf(text, 16, "-%.*f %s", digits, ago < 1e6 ? ago : 1e6, units[unit].name);
    return text;
}
