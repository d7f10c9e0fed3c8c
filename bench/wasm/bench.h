/* The rows of the WebAssembly benchmarks, over any runtime. */
#ifndef WASM_BENCH_H
#define WASM_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The exports that rows call. */
typedef enum { FN_NOTHING, FN_REQUEST, FN_GROW } function;

typedef struct guest {
    const char *name; /* "small", "big", "qjs" */
    bool ready;       /* stored after its initialisation, by preinit.py */
    uint8_t *bytes;
    size_t size;
} guest;

/* One runtime with one way to give it memory. Any function that fails ends the program with a message. */
typedef struct runtime {
    const char *const *variants; /* NULL-terminated */
    const char *(*version)(void);
    /* most: live instances at once */
    void (*start)(const char *variant, const guest *g, unsigned most);
    /* A thread other than the first comes and goes. NULL = nothing to do. */
    void (*thread_start)(void);
    void (*thread_end)(void);
    /* number: which one, for variants with a tenant each */
    void *(*open)(unsigned number);
    /* What the guest does before its first request. */
    void (*init)(void *instance);
    int32_t (*call)(void *instance, function f, int32_t argument);
    void (*close)(void *instance);
    /* From now on open is given by this instance's state, and reset brings it back. False = this variant has
     * no reset. */
    bool (*image)(void *instance);
    void (*reset)(void *instance);
    void *(*memory)(void *instance, size_t *size);
    void (*stop)(void);
} runtime;

extern const runtime bench_runtime;

_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
double bench_seconds(clockid_t clock);
/* A whole file, malloc; one that cannot be read ends the program. */
uint8_t *bench_read(const char *path, size_t *size);

/* QuickJS of the package quickjs-wasi: its script, and where it puts it. */
extern const char bench_script[];

#endif
