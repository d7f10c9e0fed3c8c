/* Options of a context, of any version of the header. */
#include "api/options.h"

#include "api/trace.h"

#include "heap/label.h"

void hak_options_init(hak_options *o, size_t size)
{
    hk_sized_init(o, size);
}

const char *hk_options_read(hak_options *o, hak_tuning *t, uint32_t *given, const hak_options *host)
{
    static const hak_options defaults = HAK_OPTIONS_INIT;
    const char *error;
    if (!hak_sized_copy(o, sizeof *o, host ? host : &defaults))
        return "hak_options.size is not set, or more is set than is known";
    o->tuning = hk_settings_read(t, o->tuning, o->mode, o->workload, given, &error);
    if (!o->tuning) return error;
    if (o->debug & ~(unsigned)(HAK_DEBUG_CHECK | HAK_DEBUG_POISON | HAK_DEBUG_ABORT | HAK_DEBUG_GUARD |
                               HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE | HAK_DEBUG_TRACE | HAK_DEBUG_RANDOM))
        return "debug: HAK_DEBUG_* only";
    if (!(o->trace_calls | o->label_count)) return NULL;
    if (o->trace_calls && (o->trace_calls < HK_TRACE_LEAST || o->trace_calls > HK_TRACE_MOST))
        return "trace_calls: 16 to 32768";
    if (o->label_count > HAK_LABELS_MAX) return "label_count: at most HAK_LABELS_MAX";
    if (o->label_count && !o->labels) return "label_count without labels";
    return hk_label_names_error(o->labels, o->label_count);
}

const char *(hak_options_error)(const hak_options *host)
{
    hak_options o;
    hak_tuning t;
    uint32_t given;
    return hk_options_read(&o, &t, &given, host);
}
