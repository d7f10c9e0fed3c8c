/* hakmem, tokens: a label for each type, from the numbers that a compiler gives to allocations.
 *
 * Clang 22 and later know the type of most allocations, and turn the type's name into a number, the token.
 * A host that calls hak_alloc_cs asks for the token of an expression; the label is that of the type:
 *
 *       static hak_tokens tokens;
 *       #define NEW(T) hak_alloc_cs(ctx, sizeof(T),                                        \
 *                                   hak_token_label(&tokens, ctx, HAK_TOKEN(sizeof(T))), \
 *                                   HAK_CALLSITE())
 *
 * LABELS     The label's name is "token " and the token in 16 hexadecimal digits. The command `hakmem` shows
 *            the type's name instead, where the program has debug information. A context gives labels of
 *            their own to the first HAK_TOKEN_LABELS tokens; others share the label "token other".
 *            Token 0 is unlabelled: the compiler gives it where it knows no type.
 * MODES      The tokens of the compiler's modes typehash and typehashpointersplit are those of types. Other
 *            modes count or draw numbers: their labels are numbers of call sites, and mean nothing where
 *            files were compiled one by one.
 *
 * STABILITY  Experimental.
 *
 * CONVENTIONS are those of hakmem.h. Since 0.1. */
#ifndef HAKMEM_TOKEN_H
#define HAKMEM_TOKEN_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the token of an allocation with these arguments, which is a constant: the compiler infers the type
 * from a sizeof in the arguments, and does not evaluate them. 0 = the compiler found no type, or does not
 * know tokens. */
#ifdef __has_builtin
#if __has_builtin(__builtin_infer_alloc_token)
#define HAK_TOKEN(...) ((uint64_t)__builtin_infer_alloc_token(__VA_ARGS__))
#endif
#endif
#ifndef HAK_TOKEN
#define HAK_TOKEN(...) ((uint64_t)0)
#endif

enum { HAK_TOKEN_LABELS = 200, HAK_TOKEN_SLOTS = 1024, HAK_TOKEN_MOST = 768 };

/* The labels of the tokens of one context. The caller owns the struct, clears it before the first use, and
 * keeps it no longer than the context. Any thread that may use the context may use the struct at the same
 * time. A token stands in the slot that its lower bits name, or in one of the next. */
typedef struct hak_tokens {
    uint64_t token[HAK_TOKEN_SLOTS]; /* 0 = none yet */
    uint8_t label[HAK_TOKEN_SLOTS];
    uint8_t taken[HAK_TOKEN_SLOTS]; /* a thread fills the slot in, or has done so */
    uint32_t count;                 /* of slots that are filled in; there is room for HAK_TOKEN_MOST */
} hak_tokens;

/* Returns the label of a token that has its own slot; -1 = ask hak_token_label. Fast. */
static inline int hak_token_known(const hak_tokens *t, uint64_t token)
{
    const unsigned i = (unsigned)(token % HAK_TOKEN_SLOTS);
    return __builtin_expect(__atomic_load_n(&t->token[i], __ATOMIC_ACQUIRE) == token, 1) ? t->label[i] : -1;
}

/* Makes a label; see hak_token_label. Costs what hak_label_define does. */
static __attribute__((cold, noinline, unused)) hak_label hak_token_define(hak_ctx *ctx, uint64_t token)
{
    static const char digits[] = "0123456789abcdef";
    char name[] = "token 0123456789abcdef";
    for (unsigned i = 0; i < 16; i++)
        name[6 + i] = digits[token >> (60 - 4 * i) & 15];
    return hak_label_define(ctx, name);
}

/* Returns the label of a token in this context, and defines the label where the token is new. 0 = token 0,
 * or hak_label_define failed. Fast; the first time, and for what HAK_TOKEN_MOST does not hold, as
 * hak_label_define.
 *
 * A thread counts a slot after it has filled the slot in, and reads the count before the slots: so a token
 * that is found in none of them while the count is full is not one of the first. */
static __attribute__((noinline, unused)) hak_label hak_token_label(hak_tokens *t, hak_ctx *ctx,
                                                                   uint64_t token)
{
    const uint32_t count = __atomic_load_n(&t->count, __ATOMIC_ACQUIRE);
    for (unsigned i = (unsigned)(token % HAK_TOKEN_SLOTS);; i = (i + 1) % HAK_TOKEN_SLOTS) {
        const uint64_t there = __atomic_load_n(&t->token[i], __ATOMIC_ACQUIRE);
        if (there == token) return t->label[i];
        if (there != 0 || i == 0) continue;
        const hak_label label =
            count < HAK_TOKEN_LABELS ? hak_token_define(ctx, token) : hak_label_define(ctx, "token other");
        if (label == 0 || count >= HAK_TOKEN_MOST) return label;
        /* If another thread fills the slot in just now, this token gets one at its next allocation. */
        if (!__atomic_exchange_n(&t->taken[i], 1, __ATOMIC_RELAXED)) {
            t->label[i] = (uint8_t)label;
            __atomic_store_n(&t->token[i], token, __ATOMIC_RELEASE);
            __atomic_fetch_add(&t->count, 1, __ATOMIC_RELEASE);
        }
        return label;
    }
}

#ifdef __cplusplus
}
#endif

#endif
