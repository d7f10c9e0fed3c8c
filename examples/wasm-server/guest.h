/* QuickJS as a guest of wasmtime: scripts run isolated from each other, each on behalf of a tenant. */
#ifndef WASM_SERVER_GUEST_H
#define WASM_SERVER_GUEST_H

#include "console.h"
#include "turns.h"

#include <hakmem/wasm.h>

#include <stddef.h>
#include <stdint.h>

typedef struct engine engine; /* one a process */
typedef struct guest guest;   /* one script at a time */

/* Stack that calls of a guest may take in the thread that runs it, which needs as much again for all else. */
enum { GUEST_STACK = 5 << 20 };

typedef enum outcome {
    RUN_OK,      /* text: the value of the script, of a promise its outcome */
    RUN_ERROR,   /* text: what it threw, "InternalError: out of memory" for example, or a rejection */
    RUN_TIME,    /* more CPU time than it may */
    RUN_TRAP,    /* text: the trap */
    RUN_REFUSED, /* no instance: text says which limit or want */
    RUN_QUOTA,   /* the customer has used up its CPU time for now */
    RUN_OUTCOMES
} outcome;

/* Compiles QuickJS, starts it once and keeps an image of it. NULL after a message on stderr. code:
 * folder of compiled code, or NULL. limit_ms: CPU time that a script has. */
engine *engine_new(hak_wasm_host *host, const char *path, const char *code, unsigned limit_ms);
void engine_delete(engine *e);

/* A QuickJS as in the image, paid by the tenant; else NULL and *text, malloc. */
guest *guest_new(engine *e, hak_wasm_tenant *tenant, char **text);
/* What a guest is to run. */
typedef struct job {
    const char *script, *input; /* input: the script's global `input`, a string; NULL = it has none */
    size_t size, input_size;
} job;

/* What came of it; answer_free takes what there is. */
typedef struct answer {
    char *text; /* the value, or what happened; up to 64 KiB; NULL = out of memory */
    size_t length;
    console console;
    double seconds; /* of CPU time */
    double wait;    /* with RUN_QUOTA: seconds until there may be a script again */
} answer;
void answer_free(answer *a);

/* The script and all jobs that it leaves, in this turn, with random numbers of its own. */
outcome guest_run(guest *g, turn *t, const job *j, answer *a);
/* As new again, and without pages of its own if no script comes for a second or two; false = the guest has
 * to be deleted. */
bool guest_reset(guest *g);
void guest_delete(guest *g);

#endif
