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
    void *(*in_types)(void *type,
                      void *name); /* borrowed; NULL = none of the type and those it comes from has it */
    int (*getattr)(void *object, void *name, void **value);
    void *(*generic_getattr)(void *object, void *name);
    void *(*intern)(const char *text);
    void (*decref)(void *object);
    void (*take_error)(void **type, void **value, void **traceback);
    void (*put_error)(void *type, void *value, void *traceback);
    void *name; /* "_name", for good */
} api;

/* Each Python that begins in a process has its own texts. */
void hkp_asker_prepare(void)
{
    api.name = NULL;
    if (!hkp_function("_PyType_Lookup", &api.in_types) ||
        (!hkp_function("PyObject_GetOptionalAttr", &api.getattr) &&
         !hkp_function("_PyObject_LookupAttr", &api.getattr)) ||
        !hkp_function("PyObject_GenericGetAttr", &api.generic_getattr) ||
        !hkp_function("PyUnicode_InternFromString", &api.intern) || !hkp_function("Py_DecRef", &api.decref) ||
        !hkp_function("PyErr_Fetch", &api.take_error) || !hkp_function("PyErr_Restore", &api.put_error))
        return;
    api.name = api.intern("_name");
}

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), most = strlen(end);
    return n >= most && strcmp(text + n - most, end) == 0;
}

/* From the object's own dictionary: what a type has of that name may be code, a property for instance. NULL =
 * not there. The error that the thread may have set stays as it is. */
static void *own_name(void *self, void *type)
{
    void *error[3], *text = NULL;
    api.take_error(&error[0], &error[1], &error[2]);
    if (!api.in_types(type, api.name) && api.getattr(self, api.name, &text) <= 0) text = NULL;
    api.put_error(error[0], error[1], error[2]);
    return text;
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
    void *type = self ? (void *)(uintptr_t)hkp_load(self, OB_TYPE) : NULL;
    void *generic;
    memcpy(&generic, &api.generic_getattr, sizeof generic);
    if (!type || hkp_load(type, TYPE_GETATTRO) != generic) return false;
    void *text = own_name(self, type);
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
