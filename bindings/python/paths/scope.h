/* hakmem.label("name") of the program: a label that goes before the provider's while the program is in it.
 *
 * The program's scope is the value of a ContextVar, so that it follows tasks. The hooks must know it without
 * asking each time: a thread keeps its answer for as long as its thread state shows the same version of the
 * current context, and forgets it when the module says that the variable was set. */
#ifndef HKP_SCOPE_H
#define HKP_SCOPE_H

#include "base/core.h"

typedef struct hkp_scope_source {
    const void *(*thread_state)(void); /* of this thread if it holds the GIL, else NULL */
    size_t version_offset;             /* of the context's version in it, uint64_t */
    /* The label of the current scope, 0 = none. The GIL is held; it must not allocate. */
    hak_label (*resolve)(void);
} hkp_scope_source;

/* From now on labels are looked for: once, and not undone. */
HKP_API void hkp_scope_enable(const hkp_scope_source *source);
/* This thread's answer may have changed. */
HKP_API void hkp_scope_changed(void);

extern bool hkp_scoped HKP_HIDDEN;
hak_label hkp_scope_find(void);

/* 0 = no scope, the provider decides. With the GIL held. */
HKP_INLINE hak_label hkp_scope_label(void)
{
    return HKP_UNLIKELY(hkp_scoped) ? hkp_scope_find() : 0;
}

#endif
