/* The heap of the machine: objects by kind, a collector that marks and sweeps, a limit. */
#include "vm.h"

static const char *const LABELS[KINDS] = {"string", "pair", "closure", "env", "code", "bytecode", "globals"};

/* ---- Allocation --------------------------------------------------------------------------------------- */

/* A heap that a collection leaves nearly full would be collected again after a few objects, and so on. */
static bool room_left(const toy *vm)
{
    return !vm->limit || hak_ctx_live_bytes(vm->heap) < vm->limit - vm->limit / 16;
}

/* The site is the line of the program: hak_ctx_visit shows it for big blocks. */
void *toy_resize(toy *vm, void *p, size_t n, hak_label label)
{
    void *q = hak_realloc_cs(vm->heap, p, n, label, vm->line);
    if (!q) {
        toy_collect(vm);
        if (room_left(vm)) q = hak_realloc_cs(vm->heap, p, n, label, vm->line);
    }
    if (!q) toy_fail(vm, "out of memory: no %zu bytes for %s", n, LABELS[label - 1]);
    return q;
}

void *toy_take(toy *vm, size_t n, hak_label label)
{
    void *p = hak_alloc_cs(vm->heap, n, label, vm->line);
    return p ? p : toy_resize(vm, NULL, n, label);
}

/* 16 bytes at least: a dead object holds a link behind its head. */
void *toy_object(toy *vm, uint8_t kind, size_t n, uint32_t count)
{
    object *o = toy_take(vm, n < 16 ? 16 : n, kind);
    *o = (object){.kind = kind, .count = count};
    return o;
}

string *toy_string(toy *vm, size_t length)
{
    if (length > UINT32_MAX) toy_fail(vm, "a string of %zu bytes is too long", length);
    return toy_object(vm, STRING, sizeof(string) + length, (uint32_t)length);
}

/* ---- The collector: mark ------------------------------------------------------------------------------ */

static bool room_for_gray(toy *vm)
{
    if (vm->grays < vm->grays_room) return true;
    object **old = vm->gray == vm->first_grays ? NULL : vm->gray;
    object **gray = vm->visiting ? NULL : hak_realloc(vm->heap, old, 2 * vm->grays_room * sizeof *gray);
    if (!gray) return false;
    if (!old) memcpy(gray, vm->first_grays, sizeof vm->first_grays);
    vm->gray = gray;
    vm->grays_room *= 2;
    return true;
}

static void mark(toy *vm, void *p)
{
    object *o = p;
    if (!o || o->marked) return;
    o->marked = true;
    if (o->kind == STRING) return;
    if (room_for_gray(vm)) vm->gray[vm->grays++] = o;
    else vm->overflow = true;
}

static void mark_values(toy *vm, const value *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_object(v[i])) mark(vm, as_object(v[i]));
}

static void mark_children(toy *vm, object *o)
{
    if (o->kind == PAIR) {
        mark_values(vm, &((pair *)o)->car, 2);
    } else if (o->kind == ENV) {
        mark(vm, ((env *)o)->up);
        mark_values(vm, ((env *)o)->slot, o->count);
    } else if (o->kind == CLOSURE) {
        mark(vm, ((closure *)o)->code);
        mark(vm, ((closure *)o)->env);
    } else if (o->kind == CODE) {
        mark_values(vm, ((code *)o)->constants, o->count);
    }
}

static void mark_gray(toy *vm)
{
    while (vm->grays)
        mark_children(vm, vm->gray[--vm->grays]);
}

/* The label tells which blocks are objects. */
static object *object_of(const hak_block *block)
{
    return block->label >= STRING && block->label <= CODE ? (object *)block->p : NULL;
}

/* There was no memory for all gray objects: some marked object has children that are not. */
static bool mark_again(void *user, const hak_block *block)
{
    object *o = object_of(block);
    if (o && o->marked) {
        mark_children(user, o);
        mark_gray(user);
    }
    return true;
}

static void mark_all(toy *vm)
{
    mark_values(vm, vm->stack, vm->top);
    for (uint32_t i = 0; i < vm->globals; i++)
        mark_values(vm, &vm->global[i].value, 1);
    for (uint32_t i = 0; i < vm->frames; i++) {
        mark(vm, vm->frame[i].code);
        mark(vm, vm->frame[i].env);
    }
    mark_gray(vm);
    while (vm->overflow) {
        vm->overflow = false;
        vm->visiting = true; /* no allocation meanwhile */
        hak_ctx_visit(vm->heap, mark_again, vm);
        vm->visiting = false;
    }
}

/* ---- The collector: sweep ----------------------------------------------------------------------------- */

/* A visitor must not free. It links the dead objects, in the order of the visit: when they are freed, hakmem
 * recognises a sweep. */
static bool find_dead(void *user, const hak_block *block)
{
    toy *vm = user;
    object *o = object_of(block);
    if (o && !o->marked) {
        *vm->dead_end = o;
        vm->dead_end = (object **)(o + 1);
    } else if (o) {
        o->marked = false;
    }
    return true;
}

static void free_dead(toy *vm)
{
    *vm->dead_end = NULL;
    for (object *next, *o = vm->dead; o; o = next) {
        next = *(object **)(o + 1);
        if (o->kind == CODE) {
            hak_free(vm->heap, ((code *)o)->instructions);
            hak_free(vm->heap, ((code *)o)->constants);
        }
        hak_free(vm->heap, o);
    }
}

/* ---- When to collect ----------------------------------------------------------------------------------- */

/* The heap has grown to the soft limit. */
static void pressed(hak_ctx *heap, void *user, size_t committed, size_t limit)
{
    (void)heap, (void)committed, (void)limit;
    toy_collect(user);
}

/* The next collection is when the heap takes pages beyond twice what is live. Nothing is counted for that in
 * the machine's own allocation path. */
static void set_limits(toy *vm)
{
    hak_stats stats = {.size = sizeof stats};
    hak_ctx_stats(vm->heap, &stats);
    size_t soft = 2 * stats.live_bytes;
    if (soft < stats.committed_bytes + 32768) soft = stats.committed_bytes + 32768;
    if (vm->limit && soft > vm->limit) soft = 0; /* the limit itself is next */
    hak_limit(vm->heap, soft, vm->limit, pressed, vm);
}

/* A block is kept for the code of what is to run: else a program that has filled the heap could not be told to
 * drop what it has. Near the limit there may be less for it than it should be. */
void toy_reserve(toy *vm, bool usable)
{
    hak_free(vm->heap, vm->reserve);
    vm->reserve = NULL;
    size_t n = usable ? 0 : vm->limit / 8 < 32768 ? vm->limit / 8 : 32768;
    for (; n >= 64 && !vm->reserve; n /= 2)
        vm->reserve = hak_alloc(vm->heap, n);
}

void toy_collect(toy *vm)
{
    if (vm->collecting) return; /* the list of gray objects crossed the soft limit */
    vm->collecting = true;
    mark_all(vm);
    vm->dead_end = &vm->dead;
    hak_ctx_visit(vm->heap, find_dead, vm);
    free_dead(vm);
    if (vm->gray != vm->first_grays) hak_free(vm->heap, vm->gray);
    vm->gray = vm->first_grays;
    vm->grays_room = GRAYS;
    vm->collections++;
    vm->collecting = false;
    set_limits(vm);
}

/* ---- Begin and end of a machine -------------------------------------------------------------------------
 */

toy *toy_new(hak_space *space, size_t limit, FILE *out)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = "toy";
    options.labels = LABELS; /* label = kind: no call for each machine */
    options.label_count = KINDS;
    hak_ctx *heap = hak_ctx_new(space, &options);
    if (heap) hak_limit(heap, 0, limit, NULL, NULL);
    toy *vm = heap ? hak_calloc(heap, 1, sizeof *vm) : NULL; /* the machine is in its own heap, unlabelled */
    if (!vm) {
        hak_ctx_destroy(heap);
        return NULL;
    }
    vm->heap = heap;
    vm->out = out;
    vm->limit = limit;
    vm->gray = vm->first_grays;
    vm->grays_room = GRAYS;
    set_limits(vm);
    if (setjmp(vm->failed)) {
        hak_ctx_destroy(heap);
        return NULL;
    }
    toy_define_builtins(vm);
    return vm;
}

void toy_drop(toy *vm)
{
    if (vm) hak_ctx_destroy(vm->heap);
}

hak_ctx *toy_heap(const toy *vm)
{
    return vm->heap;
}

size_t toy_collections(const toy *vm)
{
    return vm->collections;
}
