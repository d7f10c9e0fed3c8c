/* The calls whose walks scripts/walks counts. Prints each one's name and the addresses of the functions that it
 * enters, in their order. */
#include <pthread.h>
#include <stdio.h>

#include "hakmem/guard.h"
#include "hakmem/hakmem.h"
#include "hakmem/profile.h"

enum { MOST = 200000, BLOCKS = 400000 };
static void *entered[MOST];
static int count;
static _Thread_local int on;
static void *blocks[BLOCKS];
static hak_ctx *shared;
static pthread_barrier_t barrier;

/* The core's, by which a call is known to be the one that is looked for. */
extern char hk_space_take[], hk_profile_add[], hk_guard_alloc[];

/* The core alone is compiled to call these. */
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (on && count < MOST) entered[count++] = function;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

static void begin(void)
{
    count = 0;
    on = 1;
}

static int has(const void *function)
{
    on = 0;
    for (int i = 0; i < count; i++)
        if (entered[i] == function) return 1;
    return 0;
}

static void show(const char *name)
{
    on = 0;
    printf("walk %s\n", name);
    for (int i = 0; i < count; i++)
        printf("%p\n", entered[i]);
}

static void *by_another_thread(void *unused)
{
    hak_free(shared, hak_alloc(shared, 40));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 8; i++)
        hak_free(shared, blocks[i]);
    begin();
    hak_free(shared, blocks[8]);
    show("a free by another thread");
    return unused;
}

static void small(hak_ctx *ctx)
{
    for (int i = 0; i < 20000; i++)
        blocks[i] = hak_alloc(ctx, 40);
    hak_free(ctx, blocks[0]);
    begin();
    blocks[0] = hak_alloc(ctx, 40);
    show("40 bytes, from the magazine");
    for (int i = 20000; i < BLOCKS; i++) {
        begin();
        blocks[i] = hak_alloc(ctx, 40);
        if (i > 30000 && has(hk_space_take)) break;
    }
    show("a refill that needs units");
}

static void larger(hak_ctx *ctx)
{
    for (size_t size = 2000; size <= 4000; size += 2000) {
        for (int i = 0; i < 5000; i++)
            blocks[i] = hak_alloc(ctx, size);
        for (int i = 0; i < 2500; i++)
            hak_free(ctx, blocks[i]);
    }
    void *p = hak_realloc_sized(ctx, hak_alloc(ctx, 1000), 1000, 2000);
    begin();
    p = hak_realloc_sized(ctx, p, 2000, 4000);
    show("2000 bytes grow to 4000");
    begin();
    p = hak_alloc(ctx, 4 << 20);
    show("4 MiB");
}

/* The 20th, when the tables have room. */
static void watched(hak_ctx *ctx, const void *function, const char *name)
{
    for (int i = 0, n = 0; i < 1000000 && n < 20; i++) {
        begin();
        void *p = hak_alloc(ctx, 40);
        n += has(function);
        hak_free(ctx, p);
        on = 0;
        if (n == 20) show(name);
    }
}

static hak_ctx *debugging(unsigned debug, const char *name)
{
    hak_options o = HAK_OPTIONS_INIT;
    o.debug = debug;
    hak_ctx *ctx = hak_ctx_new(NULL, &o);
    for (int i = 0; i < 1000; i++)
        blocks[i] = hak_alloc(ctx, 40);
    for (int i = 0; i < 500; i++)
        hak_free(ctx, blocks[i]);
    begin();
    void *p = hak_alloc(ctx, 40);
    if (name) show(name);
    on = 0;
    hak_free(ctx, p);
    return ctx;
}

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    small(ctx);
    larger(ctx);
    hak_profile_options o = HAK_PROFILE_OPTIONS_INIT;
    o.mean = 4096;
    hak_profile_start(ctx, &o);
    watched(ctx, hk_profile_add, "a sample of a profile");
    debugging(HAK_DEBUG_CANARY, "a block with a canary");
    watched(debugging(HAK_DEBUG_GUARD, NULL), hk_guard_alloc, "a block before a guard page");

    ctx = hak_ctx_new(NULL, NULL);
    hak_limit(ctx, 0, 1 << 20, NULL, NULL);
    void *p;
    do {
        begin();
        p = hak_alloc(ctx, 40);
    } while (p);
    show("no memory below the limit");

    hak_options of_all = HAK_OPTIONS_INIT;
    of_all.shared = true;
    shared = hak_ctx_new(NULL, &of_all);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    pthread_create(&thread, NULL, by_another_thread, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3000; i++)
        blocks[i] = hak_alloc(shared, 40);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
