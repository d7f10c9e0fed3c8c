/* asyncio runs each step of a task by Handle._run, whose first local variable is the handle; its callback is
 * an object that has the task. Read from the objects, since asking for an attribute may allocate. */
#include "profile/task.h"

#include "base/cpython.h"
#include "heap/interpreters.h"
#include "lines/site.h"
#include "profile/few.h"
#include "profile/known.h"

#include <string.h>

enum { OB_TYPE = 8, TYPE_NAME = 24, TYPE_SIZE = 32, TYPE_BASE = 256 };
enum { HANDLE_CALLBACK = 24, STEP_TASK = 16, FUNCTION_SELF = 24 };
enum { PREFIX = 5 /* "task " */ };

/* Of _asyncio.Task, by version. The size tells whether it is as expected. */
static const struct {
    int version;
    uint16_t size, name;
} layouts[] = {{0x030a, 192, 168}, {0x030b, 176, 144}, {0x030c, 176, 144},
               {0x030d, 144, 128}, {0x030e, 168, 136}, {0x030f, 168, 136}};

#define TASK ((uintptr_t)2 << 60)
static hkp_few names = {.others = "task (others)"};

static const char *type_name(const void *object)
{
    return hkp_load(hkp_load(object, OB_TYPE), TYPE_NAME);
}

static const void *task_of(const void *handle)
{
    if (!handle || !hkp_known_ends(type_name(handle), "Handle")) return NULL;
    const void *callback = hkp_load(handle, HANDLE_CALLBACK);
    if (!callback) return NULL;
    const char *name = type_name(callback);
    if (hkp_known_ends(name, "TaskStepMethWrapper")) return hkp_load(callback, STEP_TASK);
    return strcmp(name, "builtin_function_or_method") == 0 ? hkp_load(callback, FUNCTION_SELF) : NULL;
}

/* The str that is its name, or None, or a number; NULL = it is no such task. */
static const void *name_of(const void *task)
{
    const hkp_python *python = hkp_python_find();
    size_t i = 0;
    while (i < sizeof layouts / sizeof layouts[0] && layouts[i].version != python->version)
        i++;
    const void *type = task && i < sizeof layouts / sizeof layouts[0] ? hkp_load(task, OB_TYPE) : NULL;
    while (type && strcmp(hkp_load(type, TYPE_NAME), "_asyncio.Task") != 0)
        type = hkp_load(type, TYPE_BASE);
    return type && hkp_load64(type, TYPE_SIZE) == layouts[i].size ? hkp_load(task, layouts[i].name) : NULL;
}

/* Task-7: there may be one for each request. */
static bool is_default(const char *name)
{
    return strncmp(name, "Task-", 5) == 0 && name[5 + strspn(name + 5, "0123456789")] == '\0';
}

uintptr_t hkp_task_now(const hkp_stack *stack, const hkp_stack_frame *frames)
{
    static hkp_known run = {.function = "_run", .file = "/asyncio/events.py", .seen = 1};
    char name[HKP_FEW_BYTES] = "task ";
    size_t i = 0;
    if (!stack->gil || hkp_interpreters_other() != 0) return 0;
    while (i < stack->count && !hkp_known_has(&run, frames[i].number))
        i++;
    if (i == stack->count) return 0;
    const void *text = name_of(task_of(hkp_stack_first_local(frames[i].frame)));
    if (text) hkp_text_of(text, name + PREFIX, sizeof name - PREFIX);
    if (name[PREFIX] == '\0' || is_default(name + PREFIX)) return 0;
    return TASK | hkp_few_number(&names, name);
}

bool hkp_task_is(uintptr_t frame)
{
    return frame >> 60 == TASK >> 60;
}

const char *hkp_task_name(uintptr_t frame)
{
    return hkp_few_name(&names, (uint32_t)frame);
}
