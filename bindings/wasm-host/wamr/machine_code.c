/* WAMR's loader of compiled modules maps machine code and its data by itself, past the allocator that the host gave it.
 * The linker's --wrap puts functions of this file before those that map, and the tenant is charged. */
#include "wasm_runtime.h"

#include "guest.h"

#include <pthread.h>
#include <stdlib.h>

enum { PLACES = 256, PAGE_LEAST = 4096 };

typedef struct mapping {
    struct mapping *next;
    const void *at;
    size_t bytes;
    hak_wasm_tenant *tenant; /* lives as long as the module, which has blocks in its heap */
} mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapping *mapped[PLACES];
static _Thread_local bool refused; /* for a limit, since hkw_wamr_code_begin */

static mapping **place_of(const void *at)
{
    return &mapped[(uintptr_t)at / PAGE_LEAST % PLACES];
}

static void remember(mapping *m)
{
    pthread_mutex_lock(&lock);
    m->next = *place_of(m->at);
    *place_of(m->at) = m;
    pthread_mutex_unlock(&lock);
}

/* Returns what was charged for; NULL = nothing. */
static mapping *forget(const void *at)
{
    pthread_mutex_lock(&lock);
    mapping **from = place_of(at);
    while (*from && (*from)->at != at)
        from = &(*from)->next;
    mapping *m = *from;
    if (m) *from = m->next;
    pthread_mutex_unlock(&lock);
    return m;
}

/* Of the program, NULL where it is linked without --wrap. */
void *__real_os_mmap(void *hint, size_t size, int prot, int flags, os_file_handle file) __attribute__((weak));
void __real_os_munmap(void *at, size_t size) __attribute__((weak));
void *__wrap_os_mmap(void *hint, size_t size, int prot, int flags, os_file_handle file);
void __wrap_os_munmap(void *at, size_t size);

/* Charges the tenant for which a module is loaded, and nobody else. */
void *__wrap_os_mmap(void *hint, size_t size, int prot, int flags, os_file_handle file)
{
    const hak_wasm_scope now = hak_wasm_current();
    if (!now.tenant || now.label != HAK_WASM_LOAD) return __real_os_mmap(hint, size, prot, flags, file);
    mapping *m = malloc(sizeof *m);
    if (!m) return NULL;
    const size_t page = (size_t)os_getpagesize();
    *m = (mapping){.bytes = (size + page - 1) / page * page, .tenant = now.tenant};
    if (hak_wasm_charge(m->tenant, m->bytes) != 0) {
        refused = true;
        free(m);
        return NULL;
    }
    void *p = __real_os_mmap(hint, size, prot, flags, file);
    if (p) {
        m->at = p;
        remember(m);
    } else {
        hak_wasm_uncharge(m->tenant, m->bytes);
        free(m);
    }
    return p;
}

void __wrap_os_munmap(void *at, size_t size)
{
    mapping *m = forget(at); /* first: the address may be somebody else's at once */
    __real_os_munmap(at, size);
    if (m) hak_wasm_uncharge(m->tenant, m->bytes);
    free(m);
}

void hkw_wamr_code_begin(void)
{
    refused = false;
}

bool hkw_wamr_code_refused(void)
{
    return refused;
}
