/* asyncio runs each step of a task by Handle._run, whose first local variable is the handle; its callback is
 * an object that has the task. Read from the objects, since asking for an attribute may allocate. */
#include "profile/task.h"

#include "base/cpython.h"
#include "heap/interpreters.h"
#include "lines/site.h"
#include "profile/few.h"

#include <string.h>

enum { OB_TYPE = 8, TYPE_NAME = 24, TYPE_SIZE = 32, TYPE_BASE = 256 };
enum { HANDLE_CALLBACK = 24, STEP_TASK = 16, FUNCTION_SELF = 24 };
enum { PLACES = 4, PREFIX = 5 /* "task " */ };

/* Of _asyncio.Task, by version. The size tells whether it is as expected. */
static const struct {
    int version;
    uint16_t size, name;
} layouts[] = {{0x030a, 192, 168}, {0x030b, 176, 144}, {0x030c, 176, 144},
               {0x030d, 144, 128}, {0x030e, 168, 136}, {0x030f, 168, 136}};

#define TASK ((uintptr_t)2 << 60)
static hkp_few names = {.others = "task (others)"};

/* Lines of Handle._run, and how many lines were looked at for that. With the GIL of the main interpreter. */
static uint32_t places[PLACES], place_count, seen = 1;

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), most = strlen(end);
    return n >= most && strcmp(text + n - most, end) == 0;
}

static bool is_place(uint32_t number)
{
    hkp_site_info info;
    for (; hkp_site_at(seen, &info); seen++)
        if (place_count < PLACES && ends(info.function, "_run") && ends(info.file, "/asyncio/events.py"))
            places[place_count++] = seen;
    for (uint32_t i = 0; i < place_count; i++)
        if (places[i] == number) return true;
    return false;
}

static const char *type_name(const void *object)
{
    return hkp_load(hkp_load(object, OB_TYPE), TYPE_NAME);
}

static const void *task_of(const void *handle)
{
    if (!handle || !ends(type_name(handle), "Handle")) return NULL;
    const void *callback = hkp_load(handle, HANDLE_CALLBACK);
    if (!callback) return NULL;
    const char *name = type_name(callback);
    if (ends(name, "TaskStepMethWrapper")) return hkp_load(callback, STEP_TASK);
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
    char name[HKP_FEW_BYTES] = "task ";
    size_t i = 0;
    if (!stack->gil || hkp_interpreters_other() != 0) return 0;
    while (i < stack->count && !is_place(frames[i].number))
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
