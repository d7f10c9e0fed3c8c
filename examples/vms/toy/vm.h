/* What the parts of the machine share: values, objects, the machine. */
#ifndef TOY_VM_H
#define TOY_VM_H

#include "toy.h"

#include <setjmp.h>
#include <string.h>

/* A value is a double, or in the bits of a NaN that no arithmetic makes: a constant, a built-in function or a
 * pointer. hakmem's blocks lie below 2^47, so that 48 bits are enough for one. */
typedef uint64_t value;
#define BOX 0xfffc000000000000u
enum { NIL, FALSE, TRUE, BUILTIN, OBJECT = 4096 }; /* below OBJECT no pointer */

/* The kinds of objects, which are the labels of their blocks, too; behind them labels of other blocks. */
enum { STRING = 1, PAIR, CLOSURE, ENV, CODE, BYTECODE, GLOBALS, KINDS = GLOBALS };

typedef struct object {
    uint8_t kind;
    bool marked;
    uint16_t parameters; /* of code */
    uint32_t count;      /* bytes of a string, slots of an env, constants of code */
} object;
typedef struct string {
    object head;
    char bytes[];
} string;
typedef struct pair {
    object head;
    value car, cdr;
} pair;
typedef struct env {
    object head;
    struct env *up;
    value slot[];
} env;
typedef struct instruction {
    uint8_t op, depth;
    uint16_t argument;
    uint32_t line;
} instruction;
typedef struct code {
    object head;
    uint32_t length; /* instructions */
    instruction *instructions;
    value *constants;
} code;
typedef struct closure {
    object head;
    code *code;
    env *env;
} closure;

enum {
    CONST,
    LOCAL,
    SET_LOCAL,
    GLOBAL,
    SET_GLOBAL,
    MAKE,
    CALL,
    TAIL_CALL,
    LET,
    UNLET,
    JUMP,
    JUMP_FALSE,
    POP,
    RETURN
};

typedef struct frame {
    code *code;
    uint32_t next;
    env *env;
} frame;
typedef struct global {
    char *name;
    value value;
} global;

enum { FRAMES = 400, STACK = 1600, GRAYS = 64 };
struct toy {
    hak_ctx *heap;
    FILE *out;
    size_t limit;  /* 0 = none */
    void *reserve; /* kept back for code */
    jmp_buf failed;
    char message[160];
    uint32_t line; /* of the program: of what is compiled or run */
    uint32_t frames, top, globals, globals_room;
    global *global;
    /* of the collector */
    bool collecting, overflow, visiting;
    size_t collections, grays, grays_room;
    object **gray, *first_grays[GRAYS], *dead, **dead_end;
    frame frame[FRAMES];
    value stack[STACK];
};

static inline value boxed(uint64_t bits)
{
    return BOX | bits;
}
static inline value from_number(double number)
{
    value v;
    memcpy(&v, &number, sizeof v);
    return v;
}
static inline double as_number(value v)
{
    double number;
    memcpy(&number, &v, sizeof number);
    return number;
}
static inline bool is_number(value v)
{
    return (v & BOX) != BOX;
}
static inline bool is_object(value v)
{
    return !is_number(v) && (v & ~BOX) >= OBJECT;
}
static inline void *as_object(value v)
{
    return (void *)(uintptr_t)(v & ~BOX);
}
static inline value from_object(const void *o)
{
    return boxed((uintptr_t)o);
}
static inline bool is_kind(value v, uint8_t kind)
{
    return is_object(v) && ((object *)as_object(v))->kind == kind;
}

/* Ends the program with a message. */
_Noreturn void toy_fail(toy *vm, const char *format, ...) __attribute__((format(printf, 2, 3)));
void toy_push(toy *vm, value v);

/* Memory of the heap or the error "out of memory". Each of these may collect: what is to stay is on the
 * stack, in a frame or in a global. */
void *toy_take(toy *vm, size_t n, hak_label label);
void *toy_resize(toy *vm, void *p, size_t n, hak_label label);
void *toy_object(toy *vm, uint8_t kind, size_t n, uint32_t count);
string *toy_string(toy *vm, size_t length);
/* Whether what is kept back may be used. */
void toy_reserve(toy *vm, bool usable);

/* The code of the next expression of *source, on top of the stack; false = there is none. */
bool toy_compile(toy *vm, const char **source);
/* Number of the global of this name, made if there is none. */
uint16_t toy_global(toy *vm, const char *name, size_t length);
void toy_define_builtins(toy *vm);
#endif
