/* macOS and Windows have no /proc, and do not tell which page belongs to what: reports there have the totals of the calling
 * process, which darwin/smaps.c and windows/smaps.c find, and no list of parts. */
#include "common/smaps.h"

#include "common/elsewhere/own.h"

#include <string.h>

bool hkc_smaps_read(hkc_smaps *maps, pid_t pid)
{
    (void)pid;
    memset(maps, 0, sizeof *maps);
    return false;
}

bool hkc_smaps_read_fd(hkc_smaps *maps, int fd)
{
    (void)fd;
    return hkc_smaps_read(maps, 0);
}

void hkc_smaps_close(hkc_smaps *maps)
{
    memset(maps, 0, sizeof *maps);
}

int hkc_proc_open(pid_t pid, const char *name)
{
    (void)pid, (void)name;
    return -1;
}

size_t hkc_resident_within(int pagemap, uintptr_t start, uintptr_t end)
{
    (void)pagemap, (void)start, (void)end;
    return 0;
}

size_t hkc_resident_of(pid_t pid)
{
    hkc_totals all;
    hkc_totals_read(&all, pid);
    return all.resident;
}

size_t hkc_command_of(pid_t pid, char *text, size_t size)
{
    int count = 0;
    char **const arguments = hkc_is_own(pid) ? hkc_own_arguments(&count) : NULL;
    size_t n = 0;
    for (int i = 0; arguments && i < count && arguments[i]; i++) {
        const size_t length = strlen(arguments[i]) + 1;
        if (length > size - 1 - n) break;
        memcpy(text + n, arguments[i], length);
        n += length;
    }
    text[n] = '\0';
    return n;
}
