#include "profile/stack.h"

#include "lines/site.h"
#include "profile/asker.h"

size_t hkp_profile_stack(hak_site site, unsigned depth, uintptr_t *frames, size_t room)
{
    hkp_stack_frame lines[HKP_PROFILE_DEPTH];
    size_t most = depth < room - 2 ? depth : room - 2, n = 0;
    const hkp_stack stack = hkp_stack_read(lines, most);
    for (; n < stack.count; n++)
        frames[n] = HKP_SITE_FRAME(lines[n].number);
    if (n == 0 && site != 0 && room > 1) frames[n++] = site;
    if (stack.more) frames[n++] = HKP_STACK_MORE;
    frames[n++] = hkp_asker_now(&stack, lines);
    return n;
}
