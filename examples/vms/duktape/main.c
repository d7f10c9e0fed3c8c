/* duktape_hak: runs a file of ECMAScript, with print(). */
#include "command.h"
#include "duktape_heap.h"

#include <stdio.h>
#include <stdlib.h>

static duk_ret_t print(duk_context *duk)
{
    const duk_idx_t count = duk_get_top(duk);
    for (duk_idx_t i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", duk_to_string(duk, i));
    putchar('\n');
    return 0;
}

/* A protected call: outside of one Duktape ends the process. */
static duk_ret_t evaluate(duk_context *duk, void *user)
{
    const command *c = user;
    duk_push_c_function(duk, print, DUK_VARARGS);
    duk_put_global_string(duk, "print");
    duk_push_string(duk, c->file);
    duk_compile_lstring_filename(duk, 0, c->text, c->length);
    duk_call(duk, 0);
    return 0;
}

static int run(duk_context *duk, const command *c)
{
    if (!duk) {
        fprintf(stderr, "%s: out of memory: no machine\n", c->file);
        return 1;
    }
    command copy = *c;
    bool good = duk_safe_call(duk, evaluate, &copy, 0, 1) == DUK_EXEC_SUCCESS;
    if (!good) fprintf(stderr, "%s: %s\n", c->file, duk_safe_to_string(duk, -1));
    fflush(stdout);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    command c;
    if (!command_read(&c, argc, argv)) return 2;
    vm_heap *heap = c.own ? NULL : duktape_heap_new(NULL, c.labels);
    if (!c.own && !heap) return 1;
    if (heap) duktape_limit(heap, c.limit);
    duk_context *duk = c.own ? duk_create_heap_default() : duktape_new(heap);
    int result = run(duk, &c);
    command_report(&c, heap ? heap->ctx : NULL);
    if (c.own && duk) duk_destroy_heap(duk);
    vm_heap_drop(heap); /* Duktape's heap goes with it */
    free(c.text);
    return result;
}
