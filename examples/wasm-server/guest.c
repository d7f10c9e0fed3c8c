/* Guests: a QuickJS each, in which one script runs after the other, reset between them. */
#define _GNU_SOURCE
#include "engine.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { TEXT_MOST = 64 << 10, EVALUATE_ASYNC = 1 << 7, PROMISE_FULFILLED = 1, PROMISE_REJECTED = 2 };

static const struct {
    const char *name;
    uint8_t parameters, results;
} functions[FUNCTIONS] = {
    [F_INITIALIZE] = {"_initialize", 0, 0},
    [F_START] = {"qjs_init", 0, 1},
    [F_TELL_REJECTIONS] = {"qjs_set_promise_rejection_handler", 1, 0},
    [F_MALLOC] = {"malloc", 1, 1},
    [F_FREE] = {"free", 1, 0},
    [F_EVALUATE] = {"qjs_eval", 4, 1},
    [F_IS_EXCEPTION] = {"qjs_is_exception", 1, 1},
    [F_EXCEPTION] = {"qjs_get_exception", 0, 1},
    [F_IS_PROMISE] = {"qjs_is_promise", 1, 1},
    [F_PROMISE_STATE] = {"qjs_promise_state", 1, 1},
    [F_PROMISE_RESULT] = {"qjs_promise_result", 1, 1},
    [F_PROPERTY] = {"qjs_get_prop_string", 2, 1},
    [F_HAS_JOBS] = {"qjs_is_job_pending", 0, 1},
    [F_RUN_JOB] = {"qjs_execute_pending_job", 0, 1},
    [F_STRING] = {"qjs_get_string_len", 2, 1},
    [F_NEW_STRING] = {"qjs_new_string", 2, 1},
    [F_NEW_FUNCTION] = {"qjs_new_host_function", 3, 1},
    [F_GLOBAL] = {"qjs_get_global", 0, 1},
    [F_SET_PROPERTY] = {"qjs_set_prop_string", 3, 1},
    [F_STACK_SIZE] = {"qjs_set_max_stack_size", 1, 0},
};

char *error_text(wasmtime_error_t *error)
{
    wasm_name_t message;
    wasmtime_error_message(error, &message);
    char *text = strndup(message.data, message.size);
    wasm_byte_vec_delete(&message);
    wasmtime_error_delete(error);
    return text;
}

/* The last line: before it comes a backtrace of functions without names. */
static char *trap_text(wasm_trap_t *trap)
{
    wasm_message_t message;
    wasm_trap_message(trap, &message);
    size_t size = strnlen(message.data, message.size);
    while (size > 0 && message.data[size - 1] == '\n')
        size--;
    const char *line = memrchr(message.data, '\n', size);
    line = line ? line + 1 + strspn(line + 1, " ") : message.data;
    char *text = strndup(line, (size_t)(message.data + size - line));
    wasm_byte_vec_delete(&message);
    wasm_trap_delete(trap);
    return text;
}

static void fail(guest *g, outcome result, char *text)
{
    if (g->failure) {
        free(text);
        return;
    }
    g->result = result;
    g->failure = text ? text : strdup("out of memory");
}

/* Every tick while the guest's code runs. Blocks while it is another's turn. */
static wasmtime_error_t *at_tick(const wasmtime_context_t *context, void *data, uint64_t *ticks,
                                 wasmtime_update_deadline_kind_t *kind)
{
    (void)context;
    guest *g = data;
    *ticks = 1;
    *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
    if (!g->turn) return NULL;
    if (!turn_tick(g->turn)) fail(g, RUN_REFUSED, strdup("the server ends"));
    else if (g->turn->seconds > g->engine->limit)
        fail(g, RUN_TIME, strdup("the script used up its CPU time"));
    return g->failure ? wasmtime_error_new("stopped") : NULL;
}

int32_t guest_call(guest *g, function f, const int32_t arguments[4])
{
    if (g->failure) return 0;
    wasmtime_val_t in[4], out = {.kind = WASMTIME_I32, .of.i32 = 0};
    for (size_t i = 0; i < 4; i++)
        in[i] = (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = arguments[i]};
    wasm_trap_t *trap;
    wasmtime_error_t *error = hak_wasmtime_call(g->instance, &g->functions[f], in, functions[f].parameters,
                                                &out, functions[f].results, &trap);
    if (error) fail(g, RUN_TRAP, error_text(error));
    if (trap) fail(g, RUN_TRAP, trap_text(trap));
    return g->failure ? 0 : out.of.i32;
}

static bool find(guest *g, const char *name, wasmtime_extern_t *item)
{
    return wasmtime_instance_export_get(g->context, hak_wasmtime_instance_get(g->instance), name,
                                        strlen(name), item);
}

static void prepare(wasmtime_store_t *store, void *data)
{
    wasmtime_store_epoch_deadline_callback(store, at_tick, data, NULL);
    wasmtime_context_set_epoch_deadline(wasmtime_store_context(store), 1);
}

guest *guest_instantiate(engine *e, hak_wasm_tenant *tenant, char **text)
{
    guest *g = calloc(1, sizeof *g);
    if (!g) {
        *text = strdup("out of memory");
        return NULL;
    }
    wasmtime_error_t *error;
    wasm_trap_t *trap;
    g->engine = e;
    g->instance = hak_wasmtime_instance_new(tenant, e->module, g, prepare, &error, &trap);
    if (!g->instance) {
        *text = error ? error_text(error) : trap_text(trap);
        free(g);
        return NULL;
    }
    g->context = hak_wasmtime_instance_context(g->instance);
    wasmtime_extern_t item = {0};
    bool complete = find(g, "memory", &item);
    g->memory = item.of.memory;
    for (int i = 0; i < FUNCTIONS && complete; i++) {
        complete = find(g, functions[i].name, &item);
        g->functions[i] = item.of.func;
    }
    if (complete) return g;
    *text = strdup("this is not the QuickJS of quickjs-wasi");
    guest_delete(g);
    return NULL;
}

guest *guest_new(engine *e, hak_wasm_tenant *tenant, char **text)
{
    guest *g = guest_instantiate(e, tenant, text);
    if (g && !guest_reset(g)) {
        *text = strdup("hakmem: no linear memory: over a limit, or no memory");
        guest_delete(g);
        g = NULL;
    }
    return g;
}

void guest_delete(guest *g)
{
    hak_wasmtime_instance_close(g->instance);
    imported_end(&g->imported);
    free(g->failure);
    free(g);
}

bool guest_reset(guest *g)
{
    return hak_wasmtime_rest(g->instance, g->engine->image) == 0;
}

/* n bytes of the guest's memory, which may grow with every call; NULL where there are none. */
static char *span(guest *g, int32_t at, size_t n)
{
    size_t size = wasmtime_memory_data_size(g->context, &g->memory);
    if (at == 0 || (uint32_t)at > size || n > size - (uint32_t)at) return NULL;
    return (char *)wasmtime_memory_data(g->context, &g->memory) + (uint32_t)at;
}

/* Renews what the image holds of the past: seeds and clock. */
static void begin(guest *g, turn *t)
{
    seeds s;
    g->context = hak_wasmtime_instance_context(g->instance); /* which ends the rest */
    if (getentropy(&s, SEEDS_BYTES) != 0) fail(g, RUN_REFUSED, strdup("no random numbers"));
    s.random |= s.random == 0;
    memcpy(wasmtime_memory_data(g->context, &g->memory) + g->engine->seeds_at, &s, SEEDS_BYTES);
    imported_begin(&g->imported);
    g->imported.length_at = g->engine->length_at;
    g->turn = t;
    wasmtime_context_set_epoch_deadline(g->context, 1);
}

int32_t guest_reserve(guest *g, size_t n, char **to)
{
    int32_t at = CALL(g, F_MALLOC, (int32_t)n);
    *to = g->failure ? NULL : span(g, at, n);
    if (!*to) fail(g, RUN_TRAP, strdup("no memory for the script"));
    return *to ? at : 0;
}

int32_t guest_string(guest *g, const char *bytes, size_t n)
{
    char *to;
    int32_t at = guest_reserve(g, n + 1, &to);
    if (!to) return 0;
    memcpy(to, bytes, n);
    to[n] = '\0';
    int32_t value = CALL(g, F_NEW_STRING, at, (int32_t)n);
    CALL(g, F_FREE, at);
    return value;
}

void guest_set_global(guest *g, const char *name, int32_t value)
{
    char *to;
    size_t n = strlen(name) + 1;
    int32_t at = guest_reserve(g, n, &to);
    if (!to) return;
    memcpy(to, name, n);
    CALL(g, F_SET_PROPERTY, CALL(g, F_GLOBAL, 0), at, value);
    CALL(g, F_FREE, at);
}

static const char script_name[] = "script", value_name[] = "value";
enum { NAMES_BYTES = sizeof script_name + sizeof value_name };

/* The script's outcome, a promise of an object whose `value` is the script's: so it may await. *names is
 * where value_name is afterwards. */
static int32_t evaluate(guest *g, const char *script, size_t size, int32_t *names)
{
    char *to;
    int32_t at = guest_reserve(g, size + 1 + NAMES_BYTES, &to);
    if (!to) return 0;
    memcpy(to, script, size);
    to[size] = '\0';
    memcpy(to + size + 1, script_name, sizeof script_name);
    memcpy(to + size + 1 + sizeof script_name, value_name, sizeof value_name);
    int32_t name = at + (int32_t)size + 1;
    *names = name + (int32_t)sizeof script_name;
    return CALL(g, F_EVALUATE, at, (int32_t)size, name, EVALUATE_ASYNC);
}

/* Runs the script and all jobs that it leaves. *value: the script's, or what it threw, 0 = none. *note comes
 * before it. */
static outcome run(guest *g, const char *script, size_t size, int32_t *value, const char **note)
{
    int32_t name = 0, promise = evaluate(g, script, size, &name);
    bool thrown = CALL(g, F_IS_EXCEPTION, promise);
    while (!thrown && CALL(g, F_HAS_JOBS, 0))
        thrown = CALL(g, F_RUN_JOB, 0) < 0;
    if (thrown) {
        *value = CALL(g, F_EXCEPTION, 0);
        return RUN_ERROR;
    }
    int32_t state = CALL(g, F_PROMISE_STATE, promise);
    *value = CALL(g, F_PROMISE_RESULT, promise);
    if (state == PROMISE_FULFILLED) {
        *value = CALL(g, F_PROPERTY, *value, name);
        if (CALL(g, F_IS_PROMISE, *value)) {
            state = CALL(g, F_PROMISE_STATE, *value);
            *value = CALL(g, F_PROMISE_RESULT, *value);
        }
    }
    if (state == PROMISE_REJECTED) return RUN_ERROR;
    if (g->imported.rejection_count > 0) {
        *note = "unhandled rejection: ";
        *value = g->imported.rejections[0].reason;
        return RUN_ERROR;
    }
    if (state == PROMISE_FULFILLED) return RUN_OK;
    *note = "the script awaits a promise, and nothing is left that could settle it";
    *value = 0;
    return RUN_ERROR;
}

/* The value as text, which may run more of the script's code; NULL = that threw. */
static const char *stringify(guest *g, int32_t value, size_t *size)
{
    uint32_t length;
    int32_t at = CALL(g, F_MALLOC, sizeof length), string = at ? CALL(g, F_STRING, value, at) : 0;
    const char *from = string ? span(g, at, sizeof length) : NULL;
    if (!from) return NULL;
    memcpy(&length, from, sizeof length);
    *size = length;
    /* The guest may have written anything anywhere. */
    return span(g, string, length);
}

/* What a script that recursed has left on the stack of its thread, which waits for its next request, goes
 * back. */
static void release_stack(void)
{
    const uintptr_t page = 4096, here = (uintptr_t)__builtin_frame_address(0) & ~(page - 1);
    madvise((void *)(here - GUEST_STACK), GUEST_STACK - 4 * page, MADV_DONTNEED);
}

void answer_free(answer *a)
{
    free(a->text);
    console_free(&a->console);
}

outcome guest_run(guest *g, turn *t, const job *j, answer *a)
{
    const char *note = "", *from = "";
    int32_t value = 0;
    size_t n = 0;
    begin(g, t);
    if (j->input) guest_set_global(g, "input", guest_string(g, j->input, j->input_size));
    outcome result = run(g, j->script, j->size, &value, &note);
    if (value && !(from = stringify(g, value, &n))) {
        result = RUN_ERROR;
        from = stringify(g, CALL(g, F_EXCEPTION, 0), &n);
        if (!from) {
            from = "";
            note = "an exception that has no text";
        }
    }
    g->turn = NULL;
    release_stack();
    a->console = g->imported.console;
    g->imported.console = (console){0};
    if (g->failure) {
        a->text = g->failure;
        a->length = strlen(g->failure);
        g->failure = NULL;
        return g->result;
    }
    size_t before = strlen(note);
    if (n > TEXT_MOST + 4) n = TEXT_MOST + 4;
    a->text = malloc(before + n + 1);
    if (a->text) {
        memcpy(a->text, note, before);
        memcpy(a->text + before, from, n);
        a->length = before + text_make_utf8(a->text + before, n, TEXT_MOST);
    }
    return result;
}
