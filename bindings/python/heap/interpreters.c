#define _GNU_SOURCE
#include "heap/interpreters.h"

#include "base/cpython.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { INTERPRETER_OF_THREAD = 16, RUNTIME_WORDS_MAX = 1 << 16 };

static const void *const no_interpreter;
hkp_interpreters hkp_interpreters_known = {&no_interpreter, NULL, NULL};

static void *(*thread_state)(void);
static int64_t (*id_of)(const void *interpreter);

#ifdef __GLIBC__
/* Returns how many bytes the symbol of an object says it has; 0 = no symbol is known. */
static size_t size_of(const void *object)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1(object, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol ? symbol->st_size : 0;
}
#else
static int match_segment(struct dl_phdr_info *info, size_t size, void *user)
{
    uintptr_t *object = user;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uintptr_t within = *object - (info->dlpi_addr + ph->p_vaddr);
        if (ph->p_type != PT_LOAD || within >= ph->p_memsz) continue;
        *object = ph->p_memsz - within;
        return 1;
    }
    return 0;
}

/* Returns how many bytes the object may have: musl tells no sizes of symbols, but what is behind the object in
 * its segment may be read, too. */
static size_t size_of(const void *object)
{
    uintptr_t at = (uintptr_t)object;
    return dl_iterate_phdr(match_segment, &at) != 0 ? at : 0;
}
#endif

/* The list in the runtime: the newest, the main one, and the number of the next. */
static const void *const *find_list(const void *runtime, const void *newest, const void *main)
{
    const void *const *words = runtime;
    size_t count = size_of(runtime) / sizeof *words;
    if (count > RUNTIME_WORDS_MAX) count = RUNTIME_WORDS_MAX;
    for (size_t i = 0; i + 2 < count; i++) {
        int64_t next;
        memcpy(&next, &words[i + 2], sizeof next);
        if (words[i] == newest && words[i + 1] == main && next > 0 && next < INT32_MAX) return &words[i];
    }
    return NULL;
}

void hkp_interpreters_find(void)
{
    void *(*newest)(void), *(*main_one)(void);
    const void *runtime = hkp_symbol("_PyRuntime");
    if (hkp_interpreters_known.main || !runtime || !hkp_function("PyInterpreterState_Head", &newest) ||
        !hkp_function("PyInterpreterState_Main", &main_one) ||
        !hkp_function("PyInterpreterState_GetID", &id_of) ||
        !(hkp_function("PyThreadState_GetUnchecked", &thread_state) ||
          hkp_function("_PyThreadState_UncheckedGet", &thread_state)))
        return;
    const void *main = main_one();
    const void *const *list = main ? find_list(runtime, newest(), main) : NULL;
    if (!list) return;
    /* in between the answer is that of one more interpreter, which is looked at closer and is the main one */
    hkp_interpreters_known.main = main;
    if (!hkp_interpreters_known.alone) hkp_interpreters_known.alone = main;
    hkp_interpreters_known.newest = list;
}

void hkp_interpreters_ask(void)
{
    hkp_interpreters_known.alone = &hkp_interpreters_known; /* no interpreter */
}

int64_t hkp_interpreters_other(void)
{
    const void *main = hkp_interpreters_known.main, *thread = main ? thread_state() : NULL, *here = NULL;
    if (thread) memcpy(&here, (const char *)thread + INTERPRETER_OF_THREAD, sizeof here);
    return here && here != main ? id_of(here) : 0;
}
