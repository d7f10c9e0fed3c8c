#include "hook/main_thread.h"

#include "heap/heap.h"
#include "heap/interpreters.h"
#include "hook/deliver.h"
#include "hook/install.h"
#include "hook/live.h"
#include "hook/past.h"
#include "hook/requests.h"
#include "hook/signals.h"
#include "profile/asker.h"
#include "profile/profile.h"

#include <stdatomic.h>
#include <string.h>

/* PyMethodDef. */
typedef struct method_def {
    const char *name;
    void *(*fn)(void *self, void *args);
    int flags;
    const char *doc;
} method_def;
enum { VARARGS = 1 };

/* The little of the C API that the first call needs. */
static struct {
    void *(*import)(const char *name);
    void *(*call_method)(void *object, const char *name, const char *format, ...);
    void *(*new_function)(method_def *def, void *self, void *module);
    void *(*attribute)(void *object, const char *name);
    void *(*build)(const char *format, ...);
    void *(*call)(void *object, void *args, void *keywords);
    void *(*system_object)(const char *name);
    void (*incref)(void *);
    void (*decref)(void *);
    void (*clear_error)(void);
    void *none;
} api;

static bool api_find(void)
{
    api.none = hkp_symbol("_Py_NoneStruct");
    return hkp_function("PyImport_ImportModule", &api.import) &&
           hkp_function("PyObject_CallMethod", &api.call_method) &&
           hkp_function("PyCFunction_NewEx", &api.new_function) &&
           hkp_function("PyObject_GetAttrString", &api.attribute) &&
           hkp_function("Py_BuildValue", &api.build) && hkp_function("PyObject_Call", &api.call) &&
           hkp_function("PySys_GetObject", &api.system_object) && hkp_function("Py_IncRef", &api.incref) &&
           hkp_function("Py_DecRef", &api.decref) && hkp_function("PyErr_Clear", &api.clear_error) &&
           api.none;
}

static void *none(void)
{
    api.incref(api.none);
    return api.none;
}

static void drop(void *const *objects, size_t count)
{
    api.clear_error();
    for (size_t i = 0; i < count; i++)
        if (objects[i]) api.decref(objects[i]);
}

/* What the program printed and Python still holds goes before a report in the same stream. */
static void flush_output(void)
{
    void *out = api.system_object("stdout"); /* borrowed */
    if (!out || out == api.none || !hkp_report_in_place()) return;
    api.incref(out);
    drop((void *const[]){api.call_method(out, "flush", NULL), out}, 2);
}

/* A function that Python calls, by that name. */
#define METHOD(function, name, ...)                                                                          \
    static void *function(void *self, void *args)                                                            \
    {                                                                                                        \
        (void)self, (void)args;                                                                              \
        __VA_ARGS__;                                                                                         \
        return none();                                                                                       \
    }                                                                                                        \
    static method_def function##_def = {name, function, VARARGS, NULL};

METHOD(at_exit, "hakmem_report", hkp_past_tell(), flush_output(), hkp_report_write(true), hkp_profile_end())
METHOD(on_request, "hakmem_request", hkp_requests_answer())
METHOD(in_child, "hakmem_live", hkp_live_in_child())
METHOD(before_fork, "hakmem_before_fork", hkp_live_before_fork())
METHOD(after_fork, "hakmem_after_fork", hkp_live_after_fork())

/* module.name(before..., function) */
static void tell(const char *module, const char *name, method_def *def, int number)
{
    void *m = api.import(module);
    void *fn = m ? api.new_function(def, NULL, NULL) : NULL;
    void *result = NULL;
    if (fn) result = number ? api.call_method(m, name, "iO", number, fn) : api.call_method(m, name, "O", fn);
    drop((void *const[]){result, fn, m}, 3);
}

/* posix.register_at_fork(before=..., after_in_parent=..., after_in_child=...) */
static void tell_fork(void)
{
    void *m = api.import("posix");
    void *register_at_fork = m ? api.attribute(m, "register_at_fork") : NULL;
    void *child = register_at_fork ? api.new_function(&in_child_def, NULL, NULL) : NULL;
    void *before = child ? api.new_function(&before_fork_def, NULL, NULL) : NULL;
    void *after = before ? api.new_function(&after_fork_def, NULL, NULL) : NULL;
    void *args = after ? api.build("()") : NULL;
    void *keywords =
        args ? api.build("{s:O,s:O,s:O}", "after_in_child", child, "before", before, "after_in_parent", after)
             : NULL;
    void *result = keywords ? api.call(register_at_fork, args, keywords) : NULL;
    drop((void *const[]){result, keywords, args, after, before, child, register_at_fork, m}, 8);
}

static void tell_requests(int number)
{
    tell("_signal", "signal", &on_request_def, number);
}

/* Registered first, so that it runs after the program's own functions at exit. Once for each Python that
 * begins in the process. */
int hkp_first_call(void)
{
    hkp_interpreters_find();
    if (!api_find()) return 0;
    hkp_asker_prepare();
    hkp_install_follow();
    hkp_install_try_kinds();
    hkp_report_renew();
    hak_stats stats = {.size = sizeof stats};
    const bool limited = hkp_stats(&stats) == 0 && stats.hard_limit > 0;
    if (hkp_report_due || hkp_frames_ready.own_state || limited) tell("atexit", "register", &at_exit_def, 0);
    hkp_signals_begin(tell_requests);
    if (hkp_live_first_call()) tell_fork();
    return 0;
}

/* ---- Soft limit ---------------------------------------------------------------------------------- */

static _Atomic(int (*)(void *)) soft_fn;
static atomic_bool soft_due;

static int soft_call(void *unused)
{
    (void)unused;
    atomic_store(&soft_due, false);
    int (*fn)(void *) = atomic_load(&soft_fn);
    return fn ? fn(NULL) : 0;
}

void hkp_soft_call(int (*fn)(void *))
{
    atomic_store(&soft_fn, fn);
    if (!fn) atomic_store(&soft_due, false); /* a call that is due goes with its Python */
}

void hkp_pressure(hak_ctx *ctx, void *user, size_t committed, size_t limit)
{
    (void)ctx, (void)user, (void)committed, (void)limit;
    const hkp_python *python = hkp_python_find();
    if (!python || !atomic_load(&soft_fn) || !python->is_initialized()) return;
    if (atomic_exchange(&soft_due, true)) return;
    if (python->add_pending_call(soft_call, NULL) != 0) atomic_store(&soft_due, false);
}
