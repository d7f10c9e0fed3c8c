#include "paths/scope.h"

#include "heap/interpreters.h"
#include "native/native.h"

#include <string.h>

bool hkp_scoped;

static hkp_scope_source source;
static _Thread_local const void *known_state; /* NULL = the answer is to be looked up */
static _Thread_local uint64_t known_version;
static _Thread_local hak_label known_label;

void hkp_scope_enable(const hkp_scope_source *s)
{
    if (hkp_scoped) return;
    source = *s;
    __atomic_store_n(&hkp_scoped, true, __ATOMIC_RELEASE);
    hkp_interpreters_ask();
    hkp_native_scoped();
}

void hkp_scope_changed(void)
{
    known_state = NULL;
}

hak_label hkp_scope_find(void)
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
