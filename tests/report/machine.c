#include "machine.h"

#ifdef __clang__ /* makes no clones */
#define FUNCTION __attribute__((noinline))
#else
#define FUNCTION __attribute__((noinline, noclone))
#endif
/* Behind a call: it is not the last one, for which a function gives up its frame. With a number, functions do
 * not become one for having the same code. */
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

FUNCTION static void *take(machine *m, size_t n)
{
    return hak_alloc_cs(m->heap, n, hak_sites_label(m->sites, HAK_SITES_SP()), 0);
}

#define ASKS(name, by)                                                                                       \
    FUNCTION void *name(machine *m, size_t n)                                                                \
    {                                                                                                        \
        void *p = by(m, n);                                                                                  \
        __asm__ volatile("" : "+r"(p) : "i"(__COUNTER__) : "memory");                                        \
        return p;                                                                                            \
    }

/* clang-format off */
ASKS(machine_string, take)
ASKS(machine_table, take)
static ASKS(grow_buffer, take)
ASKS(machine_wrapped, grow_buffer)

#define ASKS10(n)                                                                                            \
    static ASKS(ask_##n##0, take) static ASKS(ask_##n##1, take) static ASKS(ask_##n##2, take)                \
    static ASKS(ask_##n##3, take) static ASKS(ask_##n##4, take) static ASKS(ask_##n##5, take)                \
    static ASKS(ask_##n##6, take) static ASKS(ask_##n##7, take) static ASKS(ask_##n##8, take)                \
    static ASKS(ask_##n##9, take)
#define NAMES10(n)                                                                                           \
    ask_##n##0, ask_##n##1, ask_##n##2, ask_##n##3, ask_##n##4, ask_##n##5, ask_##n##6, ask_##n##7,          \
        ask_##n##8, ask_##n##9
#define THIRTY(each, between)                                                                                \
    each(0) between each(1) between each(2) between each(3) between each(4) between each(5) between          \
    each(6) between each(7) between each(8) between each(9) between each(10) between each(11) between        \
    each(12) between each(13) between each(14) between each(15) between each(16) between each(17) between    \
    each(18) between each(19) between each(20) between each(21) between each(22) between each(23) between    \
    each(24) between each(25) between each(26) between each(27) between each(28) between each(29)
#define COMMA ,

THIRTY(ASKS10, )

static void *(*const many[MACHINE_MANY])(machine *, size_t) = {THIRTY(NAMES10, COMMA)};
/* clang-format on */

FUNCTION void *machine_many(machine *m, size_t which, size_t n)
{
    void *own = take(m, 8), *p = own ? many[which](m, n) : NULL;
    hak_free(m->heap, own);
    KEEP(p);
    return p;
}

FUNCTION static void *take_site(hak_ctx *heap, size_t n)
{
    return hak_alloc_cs(heap, n, 0, HAK_CALLSITE());
}

FUNCTION void *machine_site(hak_ctx *heap, size_t n)
{
    void *p = take_site(heap, n);
    KEEP(p);
    return p;
}
