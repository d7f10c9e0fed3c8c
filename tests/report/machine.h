/* A machine that takes all of its memory through one function: what test_host.cpp calls. */
#ifndef REPORT_TEST_MACHINE_H
#define REPORT_TEST_MACHINE_H

#include <hakmem/report.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct machine {
    hak_ctx *heap;
    hak_sites *sites;
} machine;

/* Functions that ask for a block of n bytes; wrap_and_ask by a function that takes memory for its callers. */
void *machine_string(machine *m, size_t n);
void *machine_table(machine *m, size_t n);
void *machine_wrapped(machine *m, size_t n);
/* A function of its own for each number below MACHINE_MANY, called by this one, which asks first itself. */
enum { MACHINE_MANY = 300 };
void *machine_many(machine *m, size_t which, size_t n);
/* A block with its call site. */
void *machine_site(hak_ctx *heap, size_t n);

#ifdef __cplusplus
}
#endif
#endif
