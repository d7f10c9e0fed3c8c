#include "program.h"

#include "interpreters.h"
#include "report.h"
#include "seldom.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

bool hk_py_awaited;

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
    void (*incref)(void *);
    void (*decref)(void *);
    void (*clear_error)(void);
    void *none;
} api;

static bool api_find(void)
{
    api.none = hk_py_symbol("_Py_NoneStruct");
    return hk_py_function("PyImport_ImportModule", &api.import) &&
           hk_py_function("PyObject_CallMethod", &api.call_method) &&
           hk_py_function("PyCFunction_NewEx", &api.new_function) &&
           hk_py_function("Py_IncRef", &api.incref) && hk_py_function("Py_DecRef", &api.decref) &&
           hk_py_function("PyErr_Clear", &api.clear_error) && api.none;
}

static void *none(void)
{
    api.incref(api.none);
    return api.none;
}

static void *at_exit(void *self, void *args)
{
    (void)self, (void)args;
    hk_py_report_write(true);
    return none();
}

static void *on_trim_signal(void *self, void *args)
{
    (void)self, (void)args;
    hk_py_trim();
    return none();
}

static method_def exit_def = {"hakmem_report", at_exit, VARARGS, NULL};
static method_def trim_def = {"hakmem_trim", on_trim_signal, VARARGS, NULL};

/* module.name(before..., function) */
static void tell(const char *module, const char *name, method_def *def, int number)
{
    void *m = api.import(module);
    void *fn = m ? api.new_function(def, NULL, NULL) : NULL;
    void *result = NULL;
    if (fn) result = number ? api.call_method(m, name, "iO", number, fn) : api.call_method(m, name, "O", fn);
    api.clear_error();
    void *const objects[] = {result, fn, m};
    for (int i = 0; i < 3; i++)
        if (objects[i]) api.decref(objects[i]);
}

/* Registered first, so that it runs after the program's own functions at exit. */
static int first_call(void)
{
    hk_py_interpreters_find();
    if (!api_find()) return 0;
    if (hk_py_report_due) tell("atexit", "register", &exit_def, 0);
    tell("_signal", "signal", &trim_def, HK_PY_TRIM_SIGNAL);
    return 0;
}

static hk_py_seldom_fn first = {first_call};

static void await(bool awaited)
{
    const hk_py_provider *provider = hk_py_provider_current();
    hk_py_awaited = awaited;
    if (provider->await) provider->await(awaited);
}

void hk_py_await(void)
{
    await(true);
}

void hk_py_await_look(void)
{
    const hk_py_python *python = hk_py_python_find();
    if (!python || !python->is_initialized()) return;
    /* -1: the queue is full; the next look tries again. */
    if (python->add_pending_call(hk_py_seldom_call, &first) == 0) await(false);
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

void hk_py_soft_call(int (*fn)(void *))
{
    atomic_store(&soft_fn, fn);
}

void hk_py_pressure(hak_ctx *ctx, void *user, size_t committed, size_t limit)
{
    (void)ctx, (void)user, (void)committed, (void)limit;
    const hk_py_python *python = hk_py_python_find();
    if (!python || !atomic_load(&soft_fn) || atomic_exchange(&soft_due, true)) return;
    if (python->add_pending_call(soft_call, NULL) != 0) atomic_store(&soft_due, false);
}
