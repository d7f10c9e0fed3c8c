#include "heap/resident.h"

#include "base/process.h"
#include "common/parts.h"
#include "heap/heap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t hkp_resident(void)
{
    return hkc_resident_of(hkp_process());
}

static size_t within(void *unused, uintptr_t start, uintptr_t end)
{
    (void)unused;
    return hkp_bytes_within(start, end);
}

void hkp_resident_take(hkc_parts *parts, size_t retained)
{
    hkc_parts_take(parts, within, hkp_ctx(), retained);
}

size_t hkp_resident_ours(void)
{
    hkc_parts *parts = hkc_parts_begin(hkp_process());
    hkp_resident_take(parts, 0);
    const size_t ours = parts ? parts->ours : 0;
    hkc_parts_close(parts);
    return ours;
}

/* Which line tells the memory of a mapping that is no file's: one without a name, [heap], where malloc
 * begins, one named by who mapped it, or a shared one. NULL = it is none of these. */
static const char *taken_by(const char *line)
{
    const char *name = strpbrk(line, "/[");
    if (name && strncmp(name, "/dev/zero ", 10) == 0) return "Rss:";
    return !name || strncmp(name, "[heap]", 6) == 0 || strncmp(name, "[anon", 5) == 0 ? "Anonymous:" : NULL;
}

size_t hkp_resident_past(void)
{
    hkc_lines in = {.fd = hkc_proc_open(hkp_process(), "smaps")};
    if (in.fd < 0) return 0;
    size_t sum = 0, whole = 1, others = 0, bytes;
    uintptr_t start, end;
    const char *taken = NULL;
    for (char *line; (line = hkc_next_line(&in));) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            whole = end - start;
            taken = taken_by(line);
            others = taken ? whole - hkp_bytes_within(start, end) : 0;
        } else if (others > 0 && hkc_kilobytes(line, taken, &bytes)) {
            sum += others == whole ? bytes : (size_t)((double)bytes * (double)others / (double)whole);
            others = 0;
        }
    }
    close(in.fd);
    return sum;
}

size_t hkp_resident_anonymous_peak(void)
{
    hkc_totals now;
    hkc_totals_read(&now, hkp_process());
    const size_t files = now.resident - now.anonymous;
    return now.peak > files ? now.peak - files : 0;
}
