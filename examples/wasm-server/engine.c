/* The engine: QuickJS compiled, started once, and as every script will find it. */
#define _GNU_SOURCE
#include "engine.h"

#include "console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { TICK_MS = 5, HOST_TICKS = 20 };

static bool failed(const char *what, wasmtime_error_t *error)
{
    if (!error) return false;
    char *text = error_text(error);
    fprintf(stderr, "wasm-server: %s: %s\n", what, text);
    free(text);
    return true;
}

/* At every tick, which wasmtime calls an epoch, scripts ask whether they may go on (guest.c). The host gives
 * idle pages back. */
static void *tick(void *p)
{
    engine *e = p;
    const struct timespec pause = {0, TICK_MS * 1000000};
    for (unsigned n = 0; !atomic_load(&e->ending); n++) {
        nanosleep(&pause, NULL);
        wasmtime_engine_increment_epoch(e->engine);
        if (n % HOST_TICKS == 0) hak_wasm_host_tick(e->host, 0);
    }
    return NULL;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(f);
        rewind(f);
        bytes = malloc(*size);
        if (bytes && fread(bytes, 1, *size, f) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (f) fclose(f);
    if (!bytes) fprintf(stderr, "wasm-server: cannot read %s\n", path);
    return bytes;
}

/* QuickJS seeds Math.random() once, when it starts, with the microseconds of the clock; the first number that
 * it draws makes the hashes of Map and Set hard to foresee. An image would give all scripts the same. So
 * QuickJS starts at a random time, and what it makes of this is looked for in its memory: guest_run puts
 * other numbers there. 0 = they are in no place, or in several. */
static uint32_t find_seeds(const guest *g, uint64_t time_ns)
{
    seeds s;
    uint64_t x = time_ns / 1000;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    s.random = x; /* the generator is xorshift64* */
    s.hash = (uint32_t)(x * 2685821657736338717);
    const uint8_t *memory = wasmtime_memory_data(g->context, &g->memory);
    size_t size = wasmtime_memory_data_size(g->context, &g->memory), found = 0;
    for (size_t at = 0; at + SEEDS_BYTES <= size; at += sizeof s.random) {
        if (memcmp(memory + at, &s, SEEDS_BYTES) != 0) continue;
        if (found) return 0;
        found = at;
    }
    return (uint32_t)found;
}

/* QuickJS counts the stack that it has in the guest's memory. wasmtime has another one for the same calls, of
 * up to GUEST_STACK bytes, and a script that recurses is to meet QuickJS's limit, an error that it can catch,
 * first. */
enum { SCRIPT_STACK = 192 << 10 };

/* `console`, of JavaScript over one function of the host. */
static void make_console(guest *g)
{
    static const char name[] = CONSOLE_HOST;
    char *to;
    int32_t length_at = guest_reserve(g, sizeof(uint32_t), &to);
    int32_t at = guest_reserve(g, sizeof name, &to);
    if (to) memcpy(to, name, sizeof name);
    guest_set_global(g, name, CALL(g, F_NEW_FUNCTION, at, (int32_t)sizeof name - 1, 1));
    size_t size = strlen(console_script) + 1;
    at = guest_reserve(g, size + sizeof "console", &to);
    if (!to) return;
    memcpy(to, console_script, size);
    memcpy(to + size, "console", sizeof "console");
    int32_t result = CALL(g, F_EVALUATE, at, (int32_t)size - 1, at + (int32_t)size, 0);
    if (!CALL(g, F_IS_EXCEPTION, result)) g->engine->length_at = (uint32_t)length_at;
}

static bool start(guest *g)
{
    uint64_t time_ns;
    if (getentropy(&time_ns, sizeof time_ns) != 0) return false;
    g->imported.time_ns = time_ns | 1ULL << 62;
    CALL(g, F_INITIALIZE, 0);
    int32_t status = CALL(g, F_START, 0);
    CALL(g, F_TELL_REJECTIONS, 1);
    CALL(g, F_STACK_SIZE, SCRIPT_STACK);
    if (g->failure || status != 0) return false;
    g->engine->seeds_at = find_seeds(g, g->imported.time_ns);
    make_console(g);
    return !g->failure && g->engine->seeds_at != 0 && g->engine->length_at != 0;
}

static bool make_image(engine *e)
{
    char *text = NULL;
    const char *why = "QuickJS does not start as that of quickjs-wasi 3.6 does";
    guest *g = guest_instantiate(e, hak_wasm_host_tenant(e->host), &text);
    if (g && start(g)) e->image = hak_wasmtime_image_take(g->instance, &why);
    if (!e->image) fprintf(stderr, "wasm-server: %s\n", text ? text : g && g->failure ? g->failure : why);
    if (g) guest_delete(g);
    free(text);
    return e->image;
}

engine *engine_new(hak_wasm_host *host, const char *path, const char *code, unsigned limit_ms)
{
    engine *e = calloc(1, sizeof *e);
    size_t size;
    uint8_t *bytes = e ? read_file(path, &size) : NULL;
    if (!bytes) {
        free(e);
        return NULL;
    }
    e->host = host;
    e->limit = limit_ms * 1e-3;
    wasmtime_error_t *error;
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_epoch_interruption_set(config, true);
    wasmtime_config_async_stack_size_set(config, 2 * GUEST_STACK); /* is not used, and must not be smaller */
    wasmtime_config_max_wasm_stack_set(config, GUEST_STACK);
    e->engine = hak_wasmtime_engine_new(host, config, &error);
    wasmtime_linker_t *linker = e->engine ? wasmtime_linker_new(e->engine) : NULL;
    bool ok = !failed("wasmtime", error) && !failed("the functions for QuickJS", imports_define(linker));
    if (ok) {
        e->module = hak_wasmtime_module_load(hak_wasm_host_tenant(host), e->engine, linker, bytes, size, code,
                                             &error);
        ok = !failed(path, error) && make_image(e);
    }
    if (ok) ok = e->ticking = pthread_create(&e->ticker, NULL, tick, e) == 0;
    if (linker) wasmtime_linker_delete(linker);
    free(bytes);
    if (ok) return e;
    engine_delete(e);
    return NULL;
}

void engine_delete(engine *e)
{
    atomic_store(&e->ending, true);
    if (e->ticking) pthread_join(e->ticker, NULL);
    hak_wasmtime_image_drop(e->image);
    hak_wasmtime_module_delete(e->module);
    if (e->engine) wasm_engine_delete(e->engine);
    free(e);
}
