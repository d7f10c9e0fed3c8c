#define _GNU_SOURCE
#include "interpreters.h"

#include "python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

enum { LABELS = 64, INTERPRETER_OF_THREAD = 16, RUNTIME_WORDS_MAX = 1 << 16 };

static const void *const no_interpreter;
hk_py_interpreters hk_py_interpreters_known = {&no_interpreter, NULL, NULL};

static void *(*thread_state)(void);
static int64_t (*id_of)(const void *interpreter);

/* By the last bits of the interpreter's number: the number and one above 16 bits of its label. */
static _Atomic uint64_t known_labels[HK_PY_DOMAINS][LABELS];

/* The list in the runtime: the newest, the main one, and the number of the next. */
static const void *const *find_list(const void *runtime, const void *newest, const void *main)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL) return NULL;
    const void *const *words = runtime;
    size_t count = symbol->st_size / sizeof *words;
    if (count > RUNTIME_WORDS_MAX) count = RUNTIME_WORDS_MAX;
    for (size_t i = 0; i + 2 < count; i++) {
        int64_t next;
        memcpy(&next, &words[i + 2], sizeof next);
        if (words[i] == newest && words[i + 1] == main && next > 0 && next < INT32_MAX) return &words[i];
    }
    return NULL;
}

void hk_py_interpreters_find(void)
{
    void *(*newest)(void), *(*main_one)(void);
    const void *runtime = hk_py_symbol("_PyRuntime");
    if (hk_py_interpreters_known.main || !runtime || !hk_py_function("PyInterpreterState_Head", &newest) ||
        !hk_py_function("PyInterpreterState_Main", &main_one) ||
        !hk_py_function("PyInterpreterState_GetID", &id_of) ||
        !(hk_py_function("PyThreadState_GetUnchecked", &thread_state) ||
          hk_py_function("_PyThreadState_UncheckedGet", &thread_state)))
        return;
    const void *main = main_one();
    const void *const *list = main ? find_list(runtime, newest(), main) : NULL;
    if (!list) return;
    /* in between the answer is that of one more interpreter, which is looked at closer and is the main one */
    hk_py_interpreters_known.main = main;
    if (!hk_py_interpreters_known.alone) hk_py_interpreters_known.alone = main;
    hk_py_interpreters_known.newest = list;
}

void hk_py_interpreters_ask(void)
{
    hk_py_interpreters_known.alone = &hk_py_interpreters_known; /* no interpreter */
}

static hak_label define(hk_py_domain domain, int64_t id)
{
    char name[40];
    snprintf(name, sizeof name, "%s@%lld", hk_py_domain_names[domain], (long long)id);
    return hk_py_label_define(name);
}

hak_label hk_py_interpreters_label(hk_py_domain domain)
{
    if (!hk_py_labels_begin()) return 0;
    /* RAW belongs to no interpreter: it is called without the GIL too. */
    if (!hk_py_interpreters_known.main || domain == HK_PY_RAW) return HK_PY_DOMAIN_LABEL(domain);
    const void *thread = thread_state(), *interpreter = NULL;
    if (thread) memcpy(&interpreter, (const char *)thread + INTERPRETER_OF_THREAD, sizeof interpreter);
    if (!interpreter || interpreter == hk_py_interpreters_known.main) return HK_PY_DOMAIN_LABEL(domain);
    int64_t id = id_of(interpreter);
    _Atomic uint64_t *slot = &known_labels[domain][id % LABELS];
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    if (word >> 16 == (uint64_t)id + 1) return (hak_label)(word & 0xffff);
    /* more labels than a context has: the rest is with the main one */
    hak_label label = define(domain, id);
    if (label == 0) label = HK_PY_DOMAIN_LABEL(domain);
    atomic_store_explicit(slot, ((uint64_t)id + 1) << 16 | label, memory_order_relaxed);
    return label;
}
