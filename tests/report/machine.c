#include "machine.h"

#define FUNCTION __attribute__((noinline, noclone))
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

ASKS(machine_string, take)
ASKS(machine_table, take)
static ASKS(grow_buffer, take) ASKS(machine_wrapped, grow_buffer)

#define ASKS10(n)                                                                                                               \
    static ASKS(ask_##n##0, take) static ASKS(ask_##n##1, take) static ASKS(ask_##n##2, take) static ASKS(                      \
        ask_##n##3,                                                                                                             \
        take) static ASKS(ask_##n##4,                                                                                           \
                          take) static ASKS(ask_##n##5,                                                                         \
                                            take) static ASKS(ask_##n##6,                                                       \
                                                              take) static ASKS(ask_##n##7,                                     \
                                                                                take) static ASKS(ask_##n##8,                   \
                                                                                                  take) static ASKS(ask_##n##9, \
                                                                                                                    take)
#define NAMES10(n)                                                                                           \
    ask_##n##0, ask_##n##1, ask_##n##2, ask_##n##3, ask_##n##4, ask_##n##5, ask_##n##6, ask_##n##7,          \
        ask_##n##8, ask_##n##9

    ASKS10(0) ASKS10(1) ASKS10(2) ASKS10(3) ASKS10(4) ASKS10(5) ASKS10(6) ASKS10(7) ASKS10(8) ASKS10(9)
        ASKS10(10) ASKS10(11) ASKS10(12) ASKS10(13) ASKS10(14) ASKS10(15) ASKS10(16) ASKS10(17) ASKS10(18)
            ASKS10(19) ASKS10(20) ASKS10(21) ASKS10(22) ASKS10(23) ASKS10(24) ASKS10(25) ASKS10(26) ASKS10(27)
                ASKS10(28) ASKS10(29)

                    static void *(*const many[MACHINE_MANY])(machine *, size_t) = {
                        NAMES10(0),  NAMES10(1),  NAMES10(2),  NAMES10(3),  NAMES10(4),  NAMES10(5),
                        NAMES10(6),  NAMES10(7),  NAMES10(8),  NAMES10(9),  NAMES10(10), NAMES10(11),
                        NAMES10(12), NAMES10(13), NAMES10(14), NAMES10(15), NAMES10(16), NAMES10(17),
                        NAMES10(18), NAMES10(19), NAMES10(20), NAMES10(21), NAMES10(22), NAMES10(23),
                        NAMES10(24), NAMES10(25), NAMES10(26), NAMES10(27), NAMES10(28), NAMES10(29)};

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
