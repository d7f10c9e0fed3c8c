/* QuickJS as a guest of wasmtime: scripts run isolated from each other, each on behalf of a tenant. */
#ifndef WASM_SERVER_GUEST_H
#define WASM_SERVER_GUEST_H

#include "turns.h"

#include <hakmem/wasm.h>

#include <stddef.h>
#include <stdint.h>

typedef struct engine engine; /* one a process */
typedef struct guest guest;   /* one script at a time */

typedef enum outcome {
    RUN_OK,      /* text: the value of the script, of a promise its outcome */
    RUN_ERROR,   /* text: what it threw, "InternalError: out of memory" for example, or a rejection */
    RUN_TIME,    /* more CPU time than it may */
    RUN_TRAP,    /* text: the trap */
    RUN_REFUSED, /* no instance: text says which limit or want */
    RUN_OUTCOMES
} outcome;

/* Compiles QuickJS, starts it once and keeps an image of it. NULL after a message on stderr. limit_ms: CPU
 * time that a script has. */
engine *engine_new(hak_wasm_host *host, const char *path, unsigned limit_ms);
void engine_delete(engine *e);

/* A QuickJS as in the image, paid by the tenant; else NULL and *text, malloc. */
guest *guest_new(engine *e, hak_wasm_tenant *tenant, char **text);
/* The script and all jobs that it leaves, in this turn, with random numbers of its own. text: malloc, up to
 * 64 KiB of `length` bytes; NULL = out of memory. */
outcome guest_run(guest *g, turn *t, const char *script, size_t size, char **text, size_t *length);
/* As new again; false = the guest has to be deleted. */
bool guest_reset(guest *g);
void guest_delete(guest *g);

#endif
