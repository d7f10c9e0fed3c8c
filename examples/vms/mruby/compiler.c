/* mruby 3.1's compiler, told "no" by its allocator: it writes to where its memory should be, calls lack of memory a
 * syntax error, and forgets its pools. The linker puts these functions before mruby's own (--wrap), and so before the
 * calls of the method `eval`, too: lack of memory is NoMemoryError, and the interpreter goes on. */
#include "mruby_heap.h"

#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/throw.h>

typedef struct mrb_parser_state parser_state;

/* mruby's macros begin and end blocks. */
/* clang-format off */

struct mrb_pool *__real_mrb_pool_open(mrb_state *mrb);
struct mrb_pool *__wrap_mrb_pool_open(mrb_state *mrb);
void __real_mrb_pool_close(struct mrb_pool *pool);
void __wrap_mrb_pool_close(struct mrb_pool *pool);
parser_state *__real_mrb_parse_nstring(mrb_state *mrb, const char *text, size_t length, mrbc_context *context);
parser_state *__wrap_mrb_parse_nstring(mrb_state *mrb, const char *text, size_t length, mrbc_context *context);
struct RProc *__real_mrb_generate_code(mrb_state *mrb, parser_state *parser);
struct RProc *__wrap_mrb_generate_code(mrb_state *mrb, parser_state *parser);

/* A pool that is open, in its own memory. */
typedef struct open_pool {
    struct mrb_pool *pool;
    struct open_pool *next;
} open_pool;

/* One call of the compiler. */
typedef struct attempt {
    struct mrb_jmpbuf jmp, *outer_jmp;
    open_pool *pools; /* which it has opened */
    size_t given_up;
    struct attempt *outer;
} attempt;
static _Thread_local attempt *now;

static void begin(attempt *a, mrb_state *mrb)
{
    const vm_heap *heap = mruby_heap_of(mrb);
    *a = (attempt){.outer_jmp = mrb->jmp, .given_up = heap ? heap->given_up : 0, .outer = now};
    now = a;
    mrb->jmp = &a->jmp;
}

/* done: it came back by itself, and the pools that are open are still used. true = it had too little memory. */
static bool end(attempt *a, mrb_state *mrb, bool done)
{
    vm_heap *heap = mruby_heap_of(mrb);
    mrb->jmp = a->outer_jmp;
    now = a->outer;
    if (heap) heap->escape = NULL;
    while (!done && a->pools) {
        struct mrb_pool *pool = a->pools->pool;
        a->pools = a->pools->next;
        __real_mrb_pool_close(pool);
    }
    return heap && heap->given_up != a->given_up;
}

static _Noreturn void no_memory(mrb_state *mrb)
{
    mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
}

/* The first page is taken here, where lack of it can be an exception: who opens a pool takes the first block from it
 * without a look at what it gets. */
struct mrb_pool *__wrap_mrb_pool_open(mrb_state *mrb)
{
    struct mrb_pool *pool = __real_mrb_pool_open(mrb);
    open_pool *own = pool && now ? mrb_pool_alloc(pool, sizeof *own) : NULL;
    if (!now) return pool;
    if (!own) {
        if (pool) __real_mrb_pool_close(pool);
        no_memory(mrb);
    }
    *own = (open_pool){pool, now->pools};
    now->pools = own;
    return pool;
}

void __wrap_mrb_pool_close(struct mrb_pool *pool)
{
    if (now)
        for (open_pool **at = &now->pools; *at; at = &(*at)->next)
            if ((*at)->pool == pool) {
                *at = (*at)->next;
                break;
            }
    __real_mrb_pool_close(pool);
}

parser_state *__wrap_mrb_parse_nstring(mrb_state *mrb, const char *text, size_t length, mrbc_context *context)
{
    attempt a;
    parser_state *volatile parser = NULL;
    volatile bool done = false;
    begin(&a, mrb);
    MRB_TRY(&a.jmp)
        parser = __real_mrb_parse_nstring(mrb, text, length, context);
        done = true;
    MRB_CATCH(&a.jmp)
    MRB_END_EXC(&a.jmp)
    const bool poor = end(&a, mrb, done);
    if (!done) mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));
    if (!poor || (parser && parser->nerr == 0)) return parser;
    if (parser) mrb_parser_free(parser);
    no_memory(mrb);
}

/* The code generator cannot free what it has made in part: it is left at the first refusal, which a collection did not
 * prevent. For an exception the parser is freed: who called cannot do it. */
struct RProc *__wrap_mrb_generate_code(mrb_state *mrb, parser_state *parser)
{
    attempt a;
    struct RProc *volatile program = NULL;
    volatile bool done = false;
    begin(&a, mrb);
    if (mruby_heap_of(mrb)) mruby_heap_of(mrb)->escape = &a.jmp.impl;
    MRB_TRY(&a.jmp)
        program = __real_mrb_generate_code(mrb, parser);
        done = true;
    MRB_CATCH(&a.jmp)
    MRB_END_EXC(&a.jmp)
    /* Of a program that failed the pools of its inner functions are still open. */
    const bool poor = end(&a, mrb, program);
    if (done) return program;
    mrb_parser_free(parser);
    if (poor) no_memory(mrb);
    mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));
}

struct RProc *mruby_compile(mrb_state *mrb, const char *text, size_t length)
{
    struct mrb_jmpbuf jmp, *outer = mrb->jmp;
    struct RProc *volatile program = NULL;
    const int arena = mrb_gc_arena_save(mrb);
    mrb->exc = NULL;
    mrb->jmp = &jmp;
    MRB_TRY(&jmp)
        parser_state *parser = mrb_parse_nstring(mrb, text, length, NULL);
        if (parser && parser->nerr == 0) program = mrb_generate_code(mrb, parser);
        if (parser) mrb_parser_free(parser);
    MRB_CATCH(&jmp)
        mrb_gc_arena_restore(mrb, arena);
    MRB_END_EXC(&jmp)
    mrb->jmp = outer;
    return program;
}
