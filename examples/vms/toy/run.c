/* Running code, and the functions that are built in. */
#include "vm.h"

#include <stdarg.h>

void toy_fail(toy *vm, const char *format, ...)
{
    char what[120];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(vm->message, sizeof vm->message, "line %u: %s", vm->line, what);
    longjmp(vm->failed, 1);
}

void toy_push(toy *vm, value v)
{
    if (vm->top == STACK) toy_fail(vm, "stack overflow");
    vm->stack[vm->top++] = v;
}

uint16_t toy_global(toy *vm, const char *name, size_t length)
{
    for (uint32_t i = 0; i < vm->globals; i++)
        if (strlen(vm->global[i].name) == length && !memcmp(vm->global[i].name, name, length))
            return (uint16_t)i;
    if (vm->globals == vm->globals_room) {
        if (vm->globals > UINT16_MAX / 2) toy_fail(vm, "too many globals");
        uint32_t room = vm->globals_room ? 2 * vm->globals_room : 32;
        vm->global = toy_resize(vm, vm->global, room * sizeof *vm->global, GLOBALS);
        vm->globals_room = room;
    }
    char *copy = toy_take(vm, length + 1, GLOBALS);
    memcpy(copy, name, length);
    copy[length] = 0;
    vm->global[vm->globals] = (global){copy, boxed(NIL)};
    return (uint16_t)vm->globals++;
}

/* ---- Built-in functions ---------------------------------------------------------------------------------
 */

/* The arguments stay on the stack until a function returns, so that it may allocate. */
static double number(toy *vm, value v)
{
    if (!is_number(v)) toy_fail(vm, "a number expected");
    return as_number(v);
}

static string *text(toy *vm, value v)
{
    if (!is_kind(v, STRING)) toy_fail(vm, "a string expected");
    return as_object(v);
}

static pair *a_pair(toy *vm, value v)
{
    if (!is_kind(v, PAIR)) toy_fail(vm, "a pair expected");
    return as_object(v);
}

static value truth(bool yes)
{
    return boxed(yes ? TRUE : FALSE);
}

#define NUMBERS(name, expression)                                                                            \
    static value name(toy *vm, const value *v, uint32_t count)                                               \
    {                                                                                                        \
        (void)count;                                                                                         \
        double a = number(vm, v[0]), b = number(vm, v[1]);                                                   \
        return expression;                                                                                   \
    }
NUMBERS(add, from_number(a + b))
NUMBERS(subtract, from_number(a - b))
NUMBERS(multiply, from_number(a *b))
NUMBERS(divide, from_number(a / b))
NUMBERS(less, truth(a < b))
NUMBERS(equal, truth(a == b))

#define BUILT_IN(name) static value name(toy *vm, const value *v, uint32_t count)
BUILT_IN(same)
{
    (void)vm, (void)count;
    return truth(v[0] == v[1]);
}
BUILT_IN(not )
{
    (void)vm, (void)count;
    return truth(v[0] == boxed(FALSE) || v[0] == boxed(NIL));
}
BUILT_IN(cons)
{
    (void)count;
    pair *p = toy_object(vm, PAIR, sizeof *p, 0);
    p->car = v[0];
    p->cdr = v[1];
    return from_object(p);
}
BUILT_IN(car)
{
    (void)count;
    return a_pair(vm, v[0])->car;
}
BUILT_IN(cdr)
{
    (void)count;
    return a_pair(vm, v[0])->cdr;
}
BUILT_IN(is_pair)
{
    (void)vm, (void)count;
    return truth(is_kind(v[0], PAIR));
}
BUILT_IN(concat)
{
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += text(vm, v[i])->head.count;
    string *all = toy_string(vm, length);
    char *to = all->bytes;
    for (uint32_t i = 0; i < count; i++) {
        string *part = as_object(v[i]);
        memcpy(to, part->bytes, part->head.count);
        to += part->head.count;
    }
    return from_object(all);
}
BUILT_IN(repeat)
{
    (void)count;
    double times = number(vm, v[1]);
    uint32_t length = text(vm, v[0])->head.count;
    if (!(times >= 0 && times * length <= UINT32_MAX)) toy_fail(vm, "a string cannot be that long");
    string *all = toy_string(vm, length * (size_t)times);
    for (size_t i = 0; i < (size_t)times; i++)
        memcpy(all->bytes + i * length, ((string *)as_object(v[0]))->bytes, length);
    return from_object(all);
}
BUILT_IN(length)
{
    (void)count;
    return from_number(text(vm, v[0])->head.count);
}
BUILT_IN(number_text)
{
    (void)count;
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.14g", number(vm, v[0]));
    string *s = toy_string(vm, (size_t)length);
    memcpy(s->bytes, digits, (size_t)length);
    return from_object(s);
}
BUILT_IN(print)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_number(v[i])) fprintf(vm->out, "%.14g", as_number(v[i]));
        else if (is_kind(v[i], STRING)) fwrite(text(vm, v[i])->bytes, 1, text(vm, v[i])->head.count, vm->out);
        else if (is_object(v[i])) fputs(is_kind(v[i], PAIR) ? "(pair)" : "(function)", vm->out);
        else
            fputs(v[i] == boxed(NIL)     ? "nil"
                  : v[i] == boxed(TRUE)  ? "#t"
                  : v[i] == boxed(FALSE) ? "#f"
                                         : "(built-in)",
                  vm->out);
    }
    fputc('\n', vm->out);
    return boxed(NIL);
}
BUILT_IN(error)
{
    (void)count;
    toy_fail(vm, "%.*s", (int)(text(vm, v[0])->head.count % 100), text(vm, v[0])->bytes);
}
BUILT_IN(collect)
{
    (void)v, (void)count;
    toy_collect(vm);
    return boxed(NIL);
}
BUILT_IN(memory)
{
    (void)v, (void)count;
    hak_label_info info[KINDS + 1];
    hak_labels_stats(vm->heap, info, KINDS + 1);
    size_t bytes = 0;
    for (int kind = STRING; kind <= CODE; kind++)
        bytes += info[kind].live_bytes;
    return from_number((double)bytes);
}

enum { ANY = UINT16_MAX };
static const struct builtin {
    const char *name;
    value (*run)(toy *vm, const value *arguments, uint32_t count);
    uint16_t count;
} BUILTINS[] = {
    {"+", add, 2},           {"-", subtract, 2},    {"*", multiply, 2},      {"/", divide, 2},
    {"<", less, 2},          {"=", equal, 2},       {"eq?", same, 2},        {"not", not, 1},
    {"cons", cons, 2},       {"car", car, 1},       {"cdr", cdr, 1},         {"pair?", is_pair, 1},
    {"concat", concat, ANY}, {"repeat", repeat, 2}, {"length", length, 1},   {"text", number_text, 1},
    {"print", print, ANY},   {"error", error, 1},   {"collect", collect, 0}, {"memory", memory, 0},
};
enum { BUILTIN_COUNT = sizeof BUILTINS / sizeof *BUILTINS };

void toy_define_builtins(toy *vm)
{
    for (uint32_t i = 0; i < BUILTIN_COUNT; i++) {
        uint16_t global_number = toy_global(vm, BUILTINS[i].name, strlen(BUILTINS[i].name));
        vm->global[global_number].value = boxed(BUILTIN + i);
    }
}

/* ---- Running --------------------------------------------------------------------------------------------
 */

/* An env of the topmost `count` values, which leave the stack. */
static env *make_env(toy *vm, env *up, uint32_t count)
{
    env *e = toy_object(vm, ENV, sizeof *e + count * sizeof *e->slot, count);
    e->up = up;
    vm->top -= count;
    memcpy(e->slot, vm->stack + vm->top, count * sizeof *e->slot);
    return e;
}

/* The function lies below its arguments. */
static void call(toy *vm, uint32_t count, bool tail)
{
    value callee = vm->stack[vm->top - count - 1];
    if (is_kind(callee, CLOSURE)) {
        closure *c = as_object(callee);
        if (c->code->head.parameters != count)
            toy_fail(vm, "%u arguments for %u parameters", count, c->code->head.parameters);
        if (!tail && vm->frames == FRAMES) toy_fail(vm, "stack overflow");
        env *e = make_env(vm, c->env, count);
        vm->top--;
        vm->frames -= tail;
        vm->frame[vm->frames++] = (frame){c->code, 0, e};
        return;
    }
    uint64_t i = is_number(callee) || is_object(callee) ? BUILTIN_COUNT : (callee & ~BOX) - BUILTIN;
    if (i >= BUILTIN_COUNT) toy_fail(vm, "this is not a function");
    if (BUILTINS[i].count != ANY && BUILTINS[i].count != count)
        toy_fail(vm, "%u arguments for %u parameters", count, BUILTINS[i].count);
    value result = BUILTINS[i].run(vm, vm->stack + vm->top - count, count);
    vm->top -= count;
    vm->stack[vm->top - 1] = result;
    vm->frames -= tail;
}

static value *local(env *e, instruction i)
{
    for (unsigned depth = i.depth; depth > 0; depth--)
        e = e->up;
    return &e->slot[i.argument];
}

static void step(toy *vm, frame *f, instruction i)
{
    vm->line = i.line;
    switch (i.op) {
    case CONST:
        toy_push(vm, f->code->constants[i.argument]);
        break;
    case LOCAL:
        toy_push(vm, *local(f->env, i));
        break;
    case SET_LOCAL:
        *local(f->env, i) = vm->stack[vm->top - 1];
        break;
    case GLOBAL:
        toy_push(vm, vm->global[i.argument].value);
        break;
    case SET_GLOBAL:
        vm->global[i.argument].value = vm->stack[vm->top - 1];
        break;
    case MAKE: {
        closure *c = toy_object(vm, CLOSURE, sizeof *c, 0);
        c->code = as_object(f->code->constants[i.argument]);
        c->env = f->env;
        toy_push(vm, from_object(c));
        break;
    }
    case CALL:
        call(vm, i.argument, false);
        break;
    case TAIL_CALL:
        call(vm, i.argument, true);
        break;
    case LET:
        f->env = make_env(vm, f->env, i.argument);
        break;
    case UNLET:
        f->env = f->env->up;
        break;
    case JUMP:
        f->next = i.argument;
        break;
    case JUMP_FALSE: {
        value v = vm->stack[--vm->top];
        if (v == boxed(FALSE) || v == boxed(NIL)) f->next = i.argument;
        break;
    }
    case POP:
        vm->top--;
        break;
    default:
        vm->frames--; /* RETURN */
    }
}

const char *toy_run(toy *vm, const char *source)
{
    vm->line = 1;
    if (setjmp(vm->failed)) {
        vm->frames = vm->top = 0;
        return vm->message;
    }
    for (toy_reserve(vm, true); toy_compile(vm, &source); toy_reserve(vm, true)) {
        uint32_t line = vm->line;
        code *c = as_object(vm->stack[--vm->top]);
        vm->frame[vm->frames++] = (frame){c, 0, NULL};
        toy_reserve(vm, false);
        while (vm->frames) {
            frame *f = &vm->frame[vm->frames - 1];
            step(vm, f, f->code->instructions[f->next++]);
        }
        vm->top = 0;
        vm->line = line;
    }
    return NULL;
}
