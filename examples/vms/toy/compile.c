/* From text to code, in one pass: no tree is built. */
#include "vm.h"

#include <stdlib.h>

enum { NAMES = 64, NESTING = 100 };

typedef struct token {
    char kind; /* ( ) n(ame) s(tring) #(number) or 0 = the end */
    const char *text;
    size_t length;
    double number;
} token;
typedef struct scope { /* an env to be, and the names of its slots */
    struct scope *up;
    uint16_t count;
    token name[NAMES];
} scope;
typedef struct parser {
    toy *vm;
    const char *at;
    unsigned nesting;
} parser;
typedef struct function { /* code being made; it is on the stack */
    code *code;
    uint32_t room, constants_room;
} function;

static token next(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n' || *p->at == ';') {
        if (*p->at == ';') p->at += strcspn(p->at, "\n");
        else p->vm->line += *p->at++ == '\n';
    }
    token t = {.kind = *p->at, .text = p->at};
    if (!t.kind) return t;
    p->at++;
    if (t.kind == '(' || t.kind == ')') return t;
    if (t.kind == '"') {
        t = (token){.kind = 's', .text = p->at, .length = strcspn(p->at, "\"")};
        if (!t.text[t.length]) toy_fail(p->vm, "a string has no end");
        for (size_t i = 0; i < t.length; i++)
            p->vm->line += t.text[i] == '\n';
        p->at += t.length + 1;
        return t;
    }
    t.length = strcspn(t.text, " \t\r\n();\"");
    p->at = t.text + t.length;
    char *end;
    t.number = strtod(t.text, &end);
    t.kind = end == p->at && (*t.text < 'A' || *t.text > 'z') ? '#' : 'n';
    return t;
}

static bool is(token t, const char *name)
{
    return t.kind == 'n' && strlen(name) == t.length && !memcmp(t.text, name, t.length);
}

static void expect(parser *p, char kind, const char *what)
{
    if (next(p).kind != kind) toy_fail(p->vm, "%s expected", what);
}

static uint32_t emit(parser *p, function *f, uint8_t op, unsigned depth, uint32_t argument)
{
    code *c = f->code;
    if (argument > UINT16_MAX || depth > UINT8_MAX || c->length == UINT16_MAX)
        toy_fail(p->vm, "too large a function");
    if (c->length == f->room) {
        uint32_t room = f->room ? 2 * f->room : 8;
        c->instructions = toy_resize(p->vm, c->instructions, room * sizeof *c->instructions, BYTECODE);
        f->room = room;
    }
    c->instructions[c->length] = (instruction){op, (uint8_t)depth, (uint16_t)argument, p->vm->line};
    return c->length++;
}

/* The jump that was emitted there leads here. */
static void land(function *f, uint32_t jump)
{
    f->code->instructions[jump].argument = (uint16_t)f->code->length;
}

/* A constant is on the stack until it is in its place. */
static uint32_t constant(parser *p, function *f, value v)
{
    code *c = f->code;
    toy_push(p->vm, v);
    if (c->head.count == f->constants_room) {
        uint32_t room = f->constants_room ? 2 * f->constants_room : 4;
        c->constants = toy_resize(p->vm, c->constants, room * sizeof *c->constants, BYTECODE);
        f->constants_room = room;
    }
    c->constants[c->head.count] = v;
    p->vm->top--;
    return c->head.count++;
}

static function begin(parser *p)
{
    code *c = toy_object(p->vm, CODE, sizeof *c, 0);
    *c = (code){.head = c->head};
    toy_push(p->vm, from_object(c));
    return (function){.code = c};
}

/* A call with nothing behind it but the return needs no frame of its own. Bytecode that was taken in advance
 * goes back. */
static void end(parser *p, function *f)
{
    code *c = f->code;
    emit(p, f, RETURN, 0, 0);
    for (uint32_t i = 0; i < c->length; i++) {
        uint32_t then = i + 1;
        while (c->instructions[i].op == CALL && c->instructions[then].op != RETURN) {
            if (c->instructions[then].op != JUMP && c->instructions[then].op != UNLET) break;
            then = c->instructions[then].op == JUMP ? c->instructions[then].argument : then + 1;
        }
        if (c->instructions[i].op == CALL && c->instructions[then].op == RETURN)
            c->instructions[i].op = TAIL_CALL;
    }
    c->instructions = toy_resize(p->vm, c->instructions, c->length * sizeof *c->instructions, BYTECODE);
    f->room = c->length;
}

static void expression(parser *p, function *f, scope *s, token t);

/* Expressions up to the ), the value is the last one's. */
static void body(parser *p, function *f, scope *s)
{
    token t = next(p);
    if (t.kind == ')') toy_fail(p->vm, "an expression expected");
    while (t.kind != ')') {
        expression(p, f, s, t);
        t = next(p);
        if (t.kind != ')') emit(p, f, POP, 0, 0);
    }
}

static void variable(parser *p, function *f, scope *s, token t, uint8_t of_env, uint8_t of_machine)
{
    unsigned depth = 0;
    for (; s; s = s->up, depth++)
        for (uint16_t i = s->count; i-- > 0;)
            if (s->name[i].length == t.length && !memcmp(s->name[i].text, t.text, t.length)) {
                emit(p, f, of_env, depth, i);
                return;
            }
    emit(p, f, of_machine, 0, toy_global(p->vm, t.text, t.length));
}

static token name(parser *p, token t)
{
    if (t.kind != 'n') toy_fail(p->vm, "a name expected");
    return t;
}

static void add_name(parser *p, scope *s, token t)
{
    if (s->count == NAMES) toy_fail(p->vm, "more than %d names", NAMES);
    s->name[s->count++] = name(p, t);
}

static void lambda(parser *p, function *f, scope *s)
{
    function inner = begin(p);
    scope names = {.up = s};
    expect(p, '(', "( of the parameters");
    for (token t = next(p); t.kind != ')'; t = next(p))
        add_name(p, &names, t);
    inner.code->head.parameters = names.count;
    body(p, &inner, &names);
    end(p, &inner);
    emit(p, f, MAKE, 0, constant(p, f, from_object(inner.code)));
    p->vm->top--;
}

static void let(parser *p, function *f, scope *s)
{
    scope names = {.up = s};
    expect(p, '(', "( of the variables");
    for (token t = next(p); t.kind != ')'; t = next(p)) {
        if (t.kind != '(') toy_fail(p->vm, "(NAME x) expected");
        token variable_name = next(p);
        expression(p, f, s, next(p));
        add_name(p, &names, variable_name);
        expect(p, ')', ")");
    }
    emit(p, f, LET, 0, names.count);
    body(p, f, &names);
    emit(p, f, UNLET, 0, 0);
}

static void branch(parser *p, function *f, scope *s)
{
    expression(p, f, s, next(p));
    uint32_t otherwise = emit(p, f, JUMP_FALSE, 0, 0);
    expression(p, f, s, next(p));
    uint32_t out = emit(p, f, JUMP, 0, 0);
    land(f, otherwise);
    token t = next(p);
    if (t.kind == ')') {
        emit(p, f, CONST, 0, constant(p, f, boxed(NIL)));
    } else {
        expression(p, f, s, t);
        expect(p, ')', ")");
    }
    land(f, out);
}

static void form(parser *p, function *f, scope *s)
{
    token t = next(p);
    if (is(t, "lambda")) {
        lambda(p, f, s);
    } else if (is(t, "let")) {
        let(p, f, s);
    } else if (is(t, "begin")) {
        body(p, f, s);
    } else if (is(t, "if")) {
        branch(p, f, s);
    } else if (is(t, "define") || is(t, "set!")) {
        token target = name(p, next(p));
        expression(p, f, s, next(p));
        variable(p, f, is(t, "set!") ? s : NULL, target, SET_LOCAL, SET_GLOBAL);
        expect(p, ')', ")");
    } else {
        uint32_t count = 0;
        expression(p, f, s, t);
        for (t = next(p); t.kind != ')'; t = next(p), count++)
            expression(p, f, s, t);
        emit(p, f, CALL, 0, count);
    }
}

static void expression(parser *p, function *f, scope *s, token t)
{
    if (++p->nesting > NESTING) toy_fail(p->vm, "nested too deeply");
    if (t.kind == '(') {
        form(p, f, s);
    } else if (t.kind == '#') {
        emit(p, f, CONST, 0, constant(p, f, from_number(t.number)));
    } else if (t.kind == 's') {
        string *text = toy_string(p->vm, t.length);
        memcpy(text->bytes, t.text, t.length);
        emit(p, f, CONST, 0, constant(p, f, from_object(text)));
    } else if (is(t, "nil") || is(t, "#f") || is(t, "#t")) {
        uint64_t bits = is(t, "nil") ? NIL : is(t, "#f") ? FALSE : TRUE;
        emit(p, f, CONST, 0, constant(p, f, boxed(bits)));
    } else if (t.kind == 'n') {
        variable(p, f, s, t, LOCAL, GLOBAL);
    } else {
        toy_fail(p->vm, "an expression expected");
    }
    p->nesting--;
}

bool toy_compile(toy *vm, const char **source)
{
    parser p = {.vm = vm, .at = *source};
    token t = next(&p);
    if (!t.kind) return false;
    function f = begin(&p);
    expression(&p, &f, NULL, t);
    end(&p, &f);
    *source = p.at;
    return true;
}
