/* Stands before hkc_names_resolve: whether locks of a tenant are held while names are looked up. */
#include "names_probe.h"

#include "profile.h"

unsigned probe_calls, probe_held;
hak_wasm_tenant *probe_tenant;

static void look(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) == 0) pthread_mutex_unlock(lock);
    else probe_held++;
}

void __real_hkc_names_resolve(hkc_names *names);
void __wrap_hkc_names_resolve(hkc_names *names);

void __wrap_hkc_names_resolve(hkc_names *names)
{
    hkw_profile *p = probe_tenant ? atomic_load(&probe_tenant->profile) : NULL;
    if (p) {
        probe_calls++;
        look(&probe_tenant->lock);
        look(&p->lock);
    }
    __real_hkc_names_resolve(names);
}
