#include "places.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#ifdef DLFO_EH_SEGMENT_TYPE

/* Weak, so that the same binary runs with an older libc. */
__attribute__((weak)) int _dl_find_object(void *, struct dl_find_object *);

static int place(uintptr_t address, char *out, size_t room)
{
    struct dl_find_object found;
    if (!_dl_find_object || _dl_find_object((void *)address, &found) != 0) return 0;
    const struct link_map *map = found.dlfo_link_map;
    const char *name = map->l_name[0] != '\0' ? map->l_name : program_invocation_name;
    return snprintf(out, room, "  0x%lx: %s+0x%lx\n", (unsigned long)address, name,
                    (unsigned long)(address - map->l_addr));
}

#else

static int place(uintptr_t address, char *out, size_t room)
{
    (void)address;
    (void)out;
    return 0 * (int)room;
}

#endif

static int is_new(const uintptr_t *addresses, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (addresses[k] == addresses[i]) return 0;
    return 1;
}

size_t hks_places_text(const uintptr_t *addresses, size_t n, char *out, size_t room)
{
    size_t used = 0;
    if (room > 0) out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        int length = is_new(addresses, i) ? place(addresses[i], out + used, room - used) : 0;
        if (length < 0 || (size_t)length >= room - used) {
            if (room > used) out[used] = '\0';
            break;
        }
        used += (size_t)length;
    }
    return used;
}
