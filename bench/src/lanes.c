#include "lanes.h"
#include BENCH_ADAPTER

#include <pthread.h>
#include <sched.h>

typedef struct lane {
    pthread_t thread;
    lane_fn *prepare, *work;
    void *shared;
    size_t index;
    pthread_barrier_t *start;
} lane;

enum { LANES_MOST = 64 };

static void pin_to(size_t index)
{
    static cpu_set_t allowed;
    if (!CPU_COUNT(&allowed)) pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);
    size_t nth = index % (unsigned)CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && nth-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
}

static void *lane_main(void *at)
{
    lane *l = at;
    ba_thread_begin(l->index);
    if (l->prepare) l->prepare(l->shared, l->index);
    pthread_barrier_wait(l->start);
    pin_to(l->index);
    l->work(l->shared, l->index);
    ba_thread_end();
    return NULL;
}

void lanes_run(size_t count, lane_fn *prepare, lane_fn *work, void *shared, uint64_t ops)
{
    lane lanes[LANES_MOST];
    pthread_barrier_t start;
    if (count > LANES_MOST || pthread_barrier_init(&start, NULL, (unsigned)count + 1)) bench_fail("lanes");
    for (size_t i = 0; i < count; i++) {
        lanes[i] = (lane){0, prepare, work, shared, i, &start};
        if (pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i])) bench_fail("cannot make a thread");
    }
    /* The last lane to be ready starts all, this thread included. */
    bench_timer t;
    pthread_barrier_wait(&start);
    timer_start(&t);
    for (size_t i = 0; i < count; i++)
        pthread_join(lanes[i].thread, NULL);
    timer_stop(&t, ops);
    pthread_barrier_destroy(&start);
}

typedef struct short_life {
    lane_fn *fn;
    void *shared;
    size_t lane;
    bool tells;
} short_life;

static void *short_main(void *at)
{
    short_life *s = at;
    ba_thread_begin(s->lane);
    s->fn(s->shared, s->lane);
    if (s->tells) ba_thread_end();
    return NULL;
}

static void live(short_life s)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_main, &s)) bench_fail("cannot make a thread");
    pthread_join(thread, NULL);
}

void lane_thread(lane_fn *fn, void *shared, size_t at)
{
    live((short_life){fn, shared, at, true});
}

void lane_thread_untold(lane_fn *fn, void *shared, size_t at)
{
    live((short_life){fn, shared, at, false});
}

struct pipe {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    bench_batch *batches[PIPE_MOST];
    size_t first, used;
};

pipe *pipe_new(void)
{
    pipe *p = bench_table(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->filled, NULL);
    return p;
}

void pipe_put(pipe *p, bench_batch *b)
{
    pthread_mutex_lock(&p->lock);
    if (p->used == PIPE_MOST) bench_fail("a pipe is full");
    p->batches[(p->first + p->used++) % PIPE_MOST] = b;
    pthread_mutex_unlock(&p->lock);
    pthread_cond_signal(&p->filled);
}

bench_batch *pipe_get(pipe *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->used)
        pthread_cond_wait(&p->filled, &p->lock);
    bench_batch *b = p->batches[p->first++ % PIPE_MOST];
    p->used--;
    pthread_mutex_unlock(&p->lock);
    return b;
}
