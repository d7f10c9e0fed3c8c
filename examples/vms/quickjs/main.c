/* quickjs_hak: runs a module of JavaScript, with QuickJS's modules std and os. The same source, without hakmem,
 * is quickjs_own. */
#include "command.h"

#include <quickjs-libc.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef QUICKJS_OWN
#include "quickjs_heap.h"
#endif

/* QuickJS's tests call it. */
static JSValue collect(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    (void)this, (void)argc, (void)argv;
    JS_RunGC(JS_GetRuntime(context));
    return JS_UNDEFINED;
}

static JSContext *new_context(JSRuntime *runtime)
{
    JSContext *context = JS_NewContext(runtime);
    if (!context) return NULL;
    js_init_module_std(context, "qjs:std");
    js_init_module_os(context, "qjs:os");
    js_init_module_bjson(context, "qjs:bjson");
    js_std_add_helpers(context, 0, NULL);
    JSValue global = JS_GetGlobalObject(context);
    JS_SetPropertyStr(context, global, "gc", JS_NewCFunction(context, collect, "gc", 0));
    JS_FreeValue(context, global);
    return context;
}

/* As QuickJS's own program does: a module if it imports or exports. */
static JSValue start(JSContext *context, const command *c)
{
    if (!JS_DetectModule(c->text, c->length))
        return JS_Eval(context, c->text, c->length, c->file, JS_EVAL_TYPE_GLOBAL);
    const int flags = JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY;
    JSValue module = JS_Eval(context, c->text, c->length, c->file, flags);
    if (JS_IsException(module)) return module;
    if (js_module_set_import_meta(context, module, true, true) < 0) return JS_EXCEPTION;
    return js_std_await(context, JS_EvalFunction(context, module));
}

static bool evaluate(JSContext *context, const command *c)
{
    JSValue value = start(context, c);
    if (JS_IsException(value)) {
        js_std_dump_error(context);
        return false;
    }
    JS_FreeValue(context, value);
    if (js_std_loop(context) == 0) return true;
    js_std_dump_error(context);
    return false;
}

static int run(JSRuntime *runtime, JSContext *context, const command *c)
{
    if (!context) {
        fprintf(stderr, "%s: out of memory: no runtime\n", c->file);
        return 1;
    }
    JS_SetModuleLoaderFunc2(runtime, NULL, js_module_loader, js_module_check_attributes, NULL);
    JS_SetHostPromiseRejectionTracker(runtime, js_std_promise_rejection_tracker, NULL);
    bool good = evaluate(context, c);
    fflush(stdout);
    return good ? 0 : 1;
}

#ifdef QUICKJS_OWN
int main(int argc, char **argv)
{
    command c;
    if (!command_read(&c, argc, argv)) return 2;
    JSRuntime *runtime = JS_NewRuntime();
    js_std_set_worker_new_context_func(new_context);
    js_std_init_handlers(runtime);
    JSContext *context = new_context(runtime);
    int result = run(runtime, context, &c);
    command_report(&c, NULL);
    js_std_free_handlers(runtime);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    free(c.text);
    return result;
}
#else
int main(int argc, char **argv)
{
    command c;
    if (!command_read(&c, argc, argv)) return 2;
    vm_heap *heap = quickjs_heap_new(NULL, c.labels);
    JSRuntime *runtime = heap ? quickjs_runtime_new(heap) : NULL;
    if (!runtime) return 1;
    js_std_set_worker_new_context_func(new_context);
    js_std_init_handlers(runtime);
    quickjs_limit(runtime, heap, c.limit);
    int result = run(runtime, new_context(runtime), &c);
    command_report(&c, heap->ctx);
    vm_heap_drop(heap); /* the runtime goes with it */
    free(c.text);
    return result;
}
#endif
