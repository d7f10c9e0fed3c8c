/* How many further periods a tick waits before it gives unused memory back. If memory is wanted again after
 * it went back, the program pays page faults, so the wait doubles. If it is not wanted, the wait falls by a
 * quarter only, so that work in phases, which does not want most of what goes back, keeps the wait all the
 * same. */
#ifndef HK_PATIENCE_H
#define HK_PATIENCE_H

#include "base/base.h"

HK_INLINE uint8_t hk_patience_more(uint8_t patience)
{
    enum { MOST = 64 };
    return (uint8_t)hk_min(patience * 2u + 1, MOST);
}

HK_INLINE uint8_t hk_patience_less(uint8_t patience)
{
    return (uint8_t)(patience - (patience + 3u) / 4);
}

#endif
