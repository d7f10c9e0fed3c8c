/* hakmem.label("name") of the program: a label that goes before the provider's while the program is in it.
 *
 * The program's scope is the value of a ContextVar, so that it follows tasks. The hooks must know it without
 * asking each time: a thread keeps its answer for as long as its thread state shows the same version of the
 * current context, and forgets it when the module says that the variable was set. */
#ifndef HK_PY_SCOPE_H
#define HK_PY_SCOPE_H

#include "core.h"

typedef struct hk_py_scope_source {
    const void *(*thread_state)(void); /* of this thread if it holds the GIL, else NULL */
    size_t version_offset;             /* of the context's version in it, uint64_t */
    /* The label of the current scope, 0 = none. The GIL is held; it must not allocate. */
    hak_label (*resolve)(void);
} hk_py_scope_source;

/* From now on labels are looked for: once, and not undone. */
HK_PY_API void hk_py_scope_enable(const hk_py_scope_source *source);
/* This thread's answer may have changed. */
HK_PY_API void hk_py_scope_changed(void);

extern bool hk_py_scoped HK_PY_HIDDEN;
hak_label hk_py_scope_find(void);

/* 0 = no scope, the provider decides. With the GIL held. */
HK_PY_INLINE hak_label hk_py_scope_label(void)
{
    return HK_PY_UNLIKELY(hk_py_scoped) ? hk_py_scope_find() : 0;
}

#endif
