#include "scope.h"

#include "interpreters.h"
#include "native.h"

#include <string.h>

bool hk_py_scoped;

static hk_py_scope_source source;
static _Thread_local const void *known_state; /* NULL = the answer is to be looked up */
static _Thread_local uint64_t known_version;
static _Thread_local hak_label known_label;

void hk_py_scope_enable(const hk_py_scope_source *s)
{
    if (hk_py_scoped) return;
    source = *s;
    __atomic_store_n(&hk_py_scoped, true, __ATOMIC_RELEASE);
    hk_py_interpreters_ask();
    hk_py_native_scoped();
}

void hk_py_scope_changed(void)
{
    known_state = NULL;
}

hak_label hk_py_scope_find(void)
{
    const char *state = source.thread_state();
    if (!state) return 0;
    uint64_t version;
    memcpy(&version, state + source.version_offset, sizeof version);
    if (state != known_state || version != known_version) {
        known_label = source.resolve();
        known_version = version;
        known_state = state;
    }
    return known_label;
}
