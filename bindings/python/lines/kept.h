/* Kinds of objects that CPython keeps in free lists when they die, and gives to who wants such a one next: the
 * block stays, and neither malloc nor free is called. */
#ifndef HKP_KEPT_H
#define HKP_KEPT_H

#include "lines/frames.h"

typedef struct hkp_kept {
    const void *type;
    size_t before; /* bytes of the block in front of the object */
} hkp_kept;

/* By type; in each slot one kind, and in empty ones a type that no object has. */
enum { HKP_KEPT_BITS = 7 };
extern hkp_kept hkp_kept_kinds[1 << HKP_KEPT_BITS] HKP_HIDDEN;
extern uint64_t hkp_kept_factor HKP_HIDDEN;

/* Finds the types of this CPython. false = there is none, or it is not known. May be called again. */
bool hkp_kept_find(void);

/* The kind of an object of that type; NULL = CPython has no free list for it. */
HKP_INLINE const hkp_kept *hkp_kept_of(const void *type)
{
    const hkp_kept *kind = &hkp_kept_kinds[(uintptr_t)type * hkp_kept_factor >> (64 - HKP_KEPT_BITS)];
    return HKP_UNLIKELY(kind->type == type) ? kind : NULL;
}

/* Whether objects that come from free lists get the line that asks for them now. */
extern bool hkp_kept_followed HKP_HIDDEN;

/* Whether an object of such a kind is in the block, by what stands where its type would: another line may have
 * asked for it since the block was made. Never where they are followed. */
bool hkp_kept_is(const void *block, size_t size);

#endif
