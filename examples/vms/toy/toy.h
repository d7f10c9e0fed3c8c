/* A small Lisp, to show how a virtual machine lives on hakmem: docs/guide/embedding.md goes through it.
 *
 *   (define NAME x) (set! NAME x) (lambda (NAME...) x...) (let ((NAME x)...) x...) (if x x [x]) (begin x...)
 *   numbers, "strings", #t, #f, nil; + - * / < = eq? not cons car cdr pair? concat repeat length text print
 * error collect; (memory) = bytes that live objects have. ; begins a comment. */
#ifndef TOY_H
#define TOY_H

#include <hakmem/hakmem.h>

#include <stdio.h>

typedef struct toy toy;

/* A machine with a heap of its own. limit: bytes that the heap may take from the space, 0 = any; out: where
 * `print` writes. NULL = no memory. */
toy *toy_new(hak_space *space, size_t limit, FILE *out);
/* Runs a program. NULL = it ended well; else the error, valid until the next call. After an error, "out of
 * memory" too, the machine goes on: globals keep what they were given. */
const char *toy_run(toy *vm, const char *source);
/* Frees what no global leads to. Also called by the machine itself. */
void toy_collect(toy *vm);
/* The machine's heap: to measure it, and to set its limit. */
hak_ctx *toy_heap(const toy *vm);
size_t toy_collections(const toy *vm);
/* The end of the machine and of all its objects, without a look at any of them. NULL is fine. */
void toy_drop(toy *vm);

#endif
