/* Stands before hkc_names_resolve: whether locks of a tenant are held while names are looked up. Before
 * pthread_mutex_lock and hak_profile_visit: which context is looked at when it is replaced meanwhile. */
#include "names_probe.h"

#include "profile.h"

unsigned probe_calls, probe_held, probe_limits, probe_stale;
hak_wasm_tenant *probe_tenant, *probe_limited;

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

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    hak_wasm_tenant *tenant = probe_limited;
    if (tenant && lock == &tenant->lock) {
        const hak_wasm_limits limits = {.heap_bytes = 1 << 20};
        const hak_ctx *before = tenant->ctx;
        probe_limited = NULL;
        hak_wasm_tenant_limit(tenant, &limits);
        probe_limits += tenant->ctx != before;
    }
    return __real_pthread_mutex_lock(lock);
}

int __real_hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user);
int __wrap_hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user);

int __wrap_hak_profile_visit(const hak_ctx *ctx, hak_profile_fn *fn, void *user)
{
    hkw_profile *p = probe_tenant ? atomic_load(&probe_tenant->profile) : NULL;
    const bool stale = probe_tenant && ctx != probe_tenant->ctx && !(p && ctx == p->linear);
    probe_stale += stale;
    return stale ? -1 : __real_hak_profile_visit(ctx, fn, user);
}
