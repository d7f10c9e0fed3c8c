#define _GNU_SOURCE
#include "profile/asker.h"

#include "base/cpython.h"
#include "heap/interpreters.h"
#include "heap/labels.h"
#include "lines/site.h"
#include "profile/few.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OB_TYPE = 8, TYPE_GETATTRO = 144 };
static hkp_few names = {.others = "(other threads)"};

#define ASKER ((uintptr_t)1 << 62)
enum { DOMAIN_AT = 32 };

_Thread_local uint8_t hkp_asking = HKP_DOMAINS;
static _Thread_local uint32_t mine; /* number of the name + 1; 0 = it is not known for good */

static struct {
    void *(*getattr)(void *object, void *name);
    void *(*generic_getattr)(void *object, void *name);
    void *(*new_text)(const char *text);
    void (*decref)(void *object);
    void *name; /* "_name", for good */
} api;

void hkp_asker_prepare(void)
{
    if (api.name || !hkp_function("PyObject_GetAttr", &api.getattr) ||
        !hkp_function("PyObject_GenericGetAttr", &api.generic_getattr) ||
        !hkp_function("PyUnicode_InternFromString", &api.new_text) || !hkp_function("Py_DecRef", &api.decref))
        return;
    api.name = api.new_text("_name");
}

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), most = strlen(end);
    return n >= most && strcmp(text + n - most, end) == 0;
}

/* Thread._bootstrap(self) is the outermost function of a thread that `threading` began: its name is an
 * attribute. Nothing is allocated, and no code of Python runs: only objects that look up their attributes as
 * all do are asked. */
static bool python_name(const hkp_stack *stack, const hkp_stack_frame *frames, char *name)
{
    hkp_site_info info;
    if (!stack->gil || !stack->outer || !api.name || hkp_interpreters_other() != 0 ||
        !hkp_site_at(frames[stack->count - 1].number, &info) || !ends(info.function, "_bootstrap") ||
        !ends(info.file, "/threading.py"))
        return false;
    void *self = (void *)(uintptr_t)hkp_stack_first_local(stack->outer);
    const void *type = self ? hkp_load(self, OB_TYPE) : NULL;
    void *generic;
    memcpy(&generic, &api.generic_getattr, sizeof generic);
    if (!type || hkp_load(type, TYPE_GETATTRO) != generic) return false;
    void *text = api.getattr(self, api.name);
    if (!text) return false;
    hkp_text_of(text, name, HKP_FEW_BYTES);
    api.decref(text); /* the thread has it */
    return name[0] != '\0';
}

static uint32_t thread_number(const hkp_stack *stack, const hkp_stack_frame *frames)
{
    char name[HKP_FEW_BYTES] = "";
    if (mine != 0) return mine - 1;
    bool known = true;
    if (syscall(SYS_gettid) == getpid()) strcpy(name, "MainThread");
    else if (!python_name(stack, frames, name))
        known = prctl(PR_GET_NAME, name) == 0 && stack->gil && stack->outer && api.name;
    const uint32_t number = hkp_few_number(&names, name);
    if (known) mine = number + 1;
    return number;
}

uintptr_t hkp_asker_now(const hkp_stack *stack, const hkp_stack_frame *frames)
{
    return ASKER | (uintptr_t)hkp_asking << DOMAIN_AT | thread_number(stack, frames);
}

bool hkp_asker_is(uintptr_t frame)
{
    return frame >> 62 == 1;
}

const char *hkp_asker_domain(uintptr_t frame)
{
    const uintptr_t domain = frame >> DOMAIN_AT & 0xff;
    return domain < HKP_DOMAINS ? hkp_domain_names[domain] : NULL;
}

const char *hkp_asker_thread(uintptr_t frame)
{
    return hkp_few_name(&names, (uint32_t)frame);
}
