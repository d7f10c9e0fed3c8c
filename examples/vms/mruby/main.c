/* mruby_hak: runs a file of Ruby. */
#include "command.h"
#include "mruby_heap.h"

#include <mruby/compile.h>
#include <stdio.h>
#include <stdlib.h>

static int run(mrb_state *mrb, const command *c)
{
    struct RProc *program = mrb ? mruby_compile(mrb, c->text, c->length) : NULL;
    if (!program) {
        fprintf(stderr, "%s: %s\n", c->file,
                mrb && !mrb->exc ? "syntax error" : "out of memory before it began");
        return 1;
    }
    mrb_top_run(mrb, program, mrb_top_self(mrb), 0);
    if (mrb->exc) mrb_print_error(mrb);
    fflush(stdout);
    return mrb->exc ? 1 : 0;
}

int main(int argc, char **argv)
{
    command c;
    if (!command_read(&c, argc, argv)) return 2;
    vm_heap *heap = c.own ? NULL : mruby_heap_new(NULL, c.labels);
    if (!c.own && !heap) return 1;
    if (heap) mruby_limit(heap, c.limit);
    mrb_state *mrb = c.own ? mrb_open() : mruby_new(heap);
    int result = run(mrb, &c);
    command_report(&c, heap ? heap->ctx : NULL);
    if (c.own && mrb) mrb_close(mrb);
    vm_heap_drop(heap); /* the interpreter goes with it */
    free(c.text);
    return result;
}
