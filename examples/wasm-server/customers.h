/* Customers: a tenant with limits each, guests that wait for their next script, counters. */
#ifndef WASM_SERVER_CUSTOMERS_H
#define WASM_SERVER_CUSTOMERS_H

#include "guest.h"

#include <hakmem/wasm_profile.h>
#include <stdio.h>

typedef struct customers customers;

typedef struct limits {
    unsigned customers;  /* at most; then the one without a script for the longest time is retired */
    unsigned instances;  /* of a customer at once */
    unsigned processors; /* scripts that run at once */
    size_t linear_bytes; /* of a customer */
    size_t heap_bytes;   /* of a customer, in wasmtime */
    quota quota;         /* CPU time of a customer */
} limits;

customers *customers_new(hak_wasm_host *host, engine *e, const limits *l);
/* No script may run any more. */
void customers_delete(customers *all);
/* Scripts that run or wait end, and none begins. */
void customers_end(customers *all);

/* Whether it can be a customer's name: 1 to 32 of a-z, 0-9, '-'. */
bool customers_name_is_good(const char *name);
/* Runs a script for a customer, who is made on first sight. As guest_run; RUN_REFUSED also when there are too
 * many customers and all have scripts. a: all zero before. */
outcome customers_run(customers *all, const char *name, const job *j, answer *a);
/* "ok", "error", ... */
const char *outcome_name(outcome o);
/* Profiles customers who are made from now on. */
void customers_profile(customers *all);
/* Shows all customers to who looks at the server. Scripts begin and end meanwhile. */
void customers_look(void *all, hak_wasm_look *look);
/* Everything in Prometheus' text format. */
void customers_report(customers *all, FILE *to);

#endif
