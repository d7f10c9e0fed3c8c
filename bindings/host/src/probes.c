/* The probes of samples, for hosts that begin their profiles by themselves. */
#include "common/otel.h"

#include <hakmem/report.h>

#include <errno.h>
#include <stddef.h>

int hak_report_probes(hak_profile_options *options)
{
    const size_t whole = offsetof(hak_profile_options, sample_gone) + sizeof options->sample_gone;
    if (!options || options->size < whole || options->sample_made || options->sample_gone) return EINVAL;
    if (!hkc_otel_there()) return ENOTSUP;
    hkc_otel_tell(options);
    return 0;
}
