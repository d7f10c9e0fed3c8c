/* How many further periods a tick waits before it gives back what nobody wanted. What is wanted again after
 * it was given back came back at the price of page faults: the wait doubles. It falls by a quarter for what
 * was not, so that work with phases, in which most of what is given back is not wanted, keeps it all the
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
