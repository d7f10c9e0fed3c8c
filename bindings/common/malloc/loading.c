/* A module that is loaded with RTLD_DEEPBIND finds libc's free before ours, and passes it our blocks, which
 * ends the process (PHP loads its extensions so). The flag is left out: such a module then finds the
 * program's symbols first, as any other one does. hardened_malloc has an option for the same. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0 /* musl knows no such thing */
#endif

typedef void *open_function(const char *file, int mode);

/* The call comes last and is a jump where the compiler optimises: libc looks at the return address to know
 * whose search path holds. */
void *dlopen(const char *file, int mode)
{
    static _Atomic(open_function *) next;
    open_function *open = atomic_load_explicit(&next, memory_order_acquire);
    if (__builtin_expect(!open, 0)) {
        open = (open_function *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
        if (!open) return NULL;
        atomic_store_explicit(&next, open, memory_order_release);
    }
    return open(file, mode & ~RTLD_DEEPBIND);
}
