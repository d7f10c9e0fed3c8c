// Thirty programs that leak, each in a way of its own. What leaks is at PLANTED, and at PLANTED_TOO where two
// places take part in one leak; nothing else may be blamed.
#pragma once

#include "simulated.h"

#include <cmath>

namespace test
{
namespace planted
{

// One block in `n` of a line whose others are gone with the request.
inline Behaviour part_of_line(Simulated &s, size_t low, size_t high, size_t count)
{
    return [n = low + s.random.below(high - low + 1), count](Simulated &now) {
        void *here[16];
        for (size_t i = 0; i < count; i++)
            here[i] = now.alloc(PLANTED, now.size(100));
        for (size_t i = 0; i < count; i++)
            if (!now.one_in(n)) now.free(here[i]);
    };
}

// A line from whose blocks some are forgotten while the others live on for a while.
inline Behaviour forgetful(Simulated &s, double low, double high, double life_low, double life_high)
{
    return [herd = Herd(), forgotten = s.between(low, high),
            life = s.between(life_low, life_high) * (double)s.all()](Simulated &now) mutable {
        void *p = now.alloc(PLANTED, now.size(120));
        if (!now.chance(forgotten)) herd.add(p);
        herd.age(now, life);
    };
}

// A queue from which `share` of what comes is taken, the oldest first.
inline Behaviour slow_consumer(Simulated &s, double low, double high)
{
    return [queue = Herd(), share = s.between(low, high)](Simulated &now) mutable {
        queue.add(now.alloc(PLANTED, now.size(120)));
        if (now.chance(share)) queue.first_goes(now);
    };
}

// A buffer that is appended to and never ends; it grows by `factor`, or by steps.
inline Behaviour endless_buffer(Simulated &s, double factor, size_t step)
{
    struct Buffer {
        void *p = nullptr;
        size_t used = 0, room = 0;
    };
    return [b = Buffer(), base = 30 + s.random.below(60), factor, step](Simulated &now) mutable {
        b.used += now.size(base);
        if (b.used <= b.room) return;
        while (b.room < b.used)
            b.room = std::max((size_t)((double)b.room * factor), b.room + now.scaled(step));
        b.p = now.resize(PLANTED, b.p, b.room);
    };
}

inline Behaviour every_request(Simulated &)
{
    return [](Simulated &now) { now.alloc(PLANTED, now.size(100)); };
}
inline Behaviour rare_request(Simulated &s)
{
    return [n = 20 + s.random.below(80)](Simulated &now) {
        if (now.one_in(n)) now.alloc(PLANTED, now.size(400));
    };
}
inline Behaviour half_of_line(Simulated &s)
{
    return part_of_line(s, 2, 2, 2);
}
inline Behaviour tenth_of_line(Simulated &s)
{
    return part_of_line(s, 8, 12, 4);
}
inline Behaviour thirtieth_of_line(Simulated &s)
{
    return part_of_line(s, 25, 35, 8);
}
inline Behaviour hundredth_of_line(Simulated &s)
{
    return part_of_line(s, 80, 120, 16);
}
inline Behaviour forgotten_sessions(Simulated &s)
{
    return forgetful(s, 0.1, 0.4, 0.02, 0.1);
}
inline Behaviour few_forgotten_sessions(Simulated &s)
{
    return forgetful(s, 0.03, 0.1, 0.002, 0.02);
}
inline Behaviour long_sessions_forgotten(Simulated &s)
{
    return forgetful(s, 0.3, 0.6, 0.05, 0.15);
}
inline Behaviour queue_half(Simulated &s)
{
    return slow_consumer(s, 0.4, 0.7);
}
inline Behaviour queue_nearly(Simulated &s)
{
    return slow_consumer(s, 0.8, 0.92);
}
inline Behaviour buffer_by_steps(Simulated &s)
{
    return endless_buffer(s, 1, 4096);
}
inline Behaviour buffer_by_half(Simulated &s)
{
    return endless_buffer(s, 1.5, 256);
}
inline Behaviour vector_doubles(Simulated &s)
{
    return endless_buffer(s, 2, 64);
}

// Lists of tenants, each of which grows by itself.
inline Behaviour many_lists(Simulated &s)
{
    struct List {
        void *p = nullptr;
        size_t used = 0, room = 0;
    };
    return [lists = std::vector<List>(20 + s.random.below(40))](Simulated &now) mutable {
        List &l = lists[now.random.below(lists.size())];
        l.used += now.size(60);
        if (l.used <= l.room) return;
        l.room = std::max(2 * l.room, l.used);
        l.p = now.resize(PLANTED, l.p, l.room);
    };
}

// Begun small, at once moved to its size, and kept, or finished and freed.
inline Behaviour moved_and_kept(Simulated &s)
{
    return [n = 2 + s.random.below(6)](Simulated &now) {
        void *p = now.alloc(PLANTED, now.size(16));
        p = now.resize(PLANTED, p, now.size(300));
        if (!now.one_in(n)) now.free(p);
    };
}

// A table of nodes, and an array that is made anew and filled when they are too many.
inline Behaviour hash_table(Simulated &)
{
    struct Table {
        void *array = nullptr;
        size_t room = 32, count = 0;
    };
    return [t = Table()](Simulated &now) mutable {
        now.alloc(PLANTED, now.size(60));
        if (t.array && ++t.count <= t.room) return;
        t.room *= 2;
        void *larger = now.alloc(PLANTED_TOO, now.scaled(t.room * 8));
        if (t.array) now.free(t.array);
        t.array = larger;
    };
}

inline Behaviour begins_late(Simulated &s)
{
    return [from = s.between(0.5, 0.65)](Simulated &now) {
        if (now.at() >= from) now.alloc(PLANTED, now.size(100));
    };
}
inline Behaviour part_begins_late(Simulated &s)
{
    return [from = s.between(0.45, 0.6), n = 3 + s.random.below(8)](Simulated &now) {
        for (int i = 0; i < 3; i++) {
            void *p = now.alloc(PLANTED, now.size(100));
            if (now.at() < from || !now.one_in(n)) now.free(p);
        }
    };
}
inline Behaviour in_bursts(Simulated &s)
{
    return [period = 2 + (unsigned)s.random.below(3)](Simulated &now) {
        if (now.window % period == 0) now.alloc(PLANTED, now.size(100));
    };
}
inline Behaviour accelerates(Simulated &)
{
    return [](Simulated &now) {
        if (now.chance(now.at())) now.alloc(PLANTED, now.size(150));
    };
}

// Garbage of the same line waits for a collector that comes by at times.
inline Behaviour beside_garbage(Simulated &s)
{
    return [heap = Herd(), period = (size_t)(s.between(0.3, 1.7) * s.requests), n = 5 + s.random.below(6),
            left = (size_t)0](Simulated &now) mutable {
        void *p = now.alloc(PLANTED, now.size(100));
        if (!now.one_in(n)) heap.add(p);
        if (left--) return;
        left = period;
        heap.clear(now);
    };
}

// Beside what comes and goes by day and night.
inline Behaviour beside_waves(Simulated &s)
{
    return [herd = Herd(), n = 3 + s.random.below(4), high = s.between(0.02, 0.06) * (double)s.all(),
            period = s.between(0.15, 0.35)](Simulated &now) mutable {
        const auto most = (size_t)(high * (1 + std::sin(6.2832 * now.at() / period)));
        for (int i = 0; i < 2; i++)
            herd.add(now.alloc(PLANTED, now.size(80)));
        herd.keep_last(now, most);
        if (now.one_in(n)) now.alloc(PLANTED, now.size(80));
    };
}

// A cache of the same line is full after a while; then there is only the leak.
inline Behaviour behind_a_cache(Simulated &s)
{
    return [cache = Herd(), most = (size_t)(s.between(0.05, 0.15) * (double)s.all()),
            n = 3 + s.random.below(4)](Simulated &now) mutable {
        cache.add(now.alloc(PLANTED, now.size(90)));
        cache.keep_last(now, most);
        if (now.one_in(n)) now.alloc(PLANTED, now.size(90));
    };
}

// Two are registered for each that is removed.
inline Behaviour half_removed(Simulated &)
{
    return [herd = Herd()](Simulated &now) mutable {
        herd.add(now.alloc(PLANTED, now.size(80)));
        herd.add(now.alloc(PLANTED, now.size(80)));
        herd.any_goes(now);
    };
}

// Large blocks, one in a window or two.
inline Behaviour large_and_rare(Simulated &s)
{
    return [n = (size_t)(s.between(0.5, 1.5) * s.requests)](Simulated &now) {
        void *p = now.alloc(PLANTED, now.size(5000));
        if (!now.one_in(n)) now.free(p);
    };
}

// A cache by key whose keys never come again; old ones are asked for, too.
inline Behaviour cache_without_bound(Simulated &s)
{
    return [hits = s.between(0.3, 0.9)](Simulated &now) {
        if (now.chance(hits)) return now.flash(PLANTED, 1, 60);
        now.alloc(PLANTED, now.size(150));
        now.alloc(PLANTED_TOO, now.size(40));
    };
}

// Connections, each with two buffers, of which one in some is never closed.
inline Behaviour never_closed(Simulated &s)
{
    return [open = Herd(), n = 8 + s.random.below(20)](Simulated &now) mutable {
        void *in = now.alloc(PLANTED, now.size(500)), *out = now.alloc(PLANTED_TOO, now.size(300));
        if (now.one_in(n)) return;
        open.add(in);
        open.add(out);
        open.keep_last(now, 60);
    };
}

// It leaks while it is busy: half of the time.
inline Behaviour by_shifts(Simulated &s)
{
    return [period = s.between(0.1, 0.3), n = 2 + s.random.below(3)](Simulated &now) {
        const bool busy = std::fmod(now.at(), period) < period / 2;
        now.flash(PLANTED, busy ? 3 : 1, 100);
        if (busy && now.one_in(n)) now.alloc(PLANTED, now.size(100));
    };
}

// All entries are moved to fresh blocks now and then, so that none is old.
inline Behaviour compacted(Simulated &s)
{
    return [herd = Herd(), period = 2 + (unsigned)s.random.below(4)](Simulated &now) mutable {
        if (now.one_in(4)) herd.add(now.alloc(PLANTED, now.size(100)));
        if (now.request != 0 || now.window % period != 0) return;
        for (void *&p : herd.blocks) {
            void *fresh = now.alloc(PLANTED, now.size(100));
            now.free(p);
            p = fresh;
        }
    };
}

inline const Shape shapes[] = {
    {"every request", every_request},
    {"one request in 20 to 100", rare_request},
    {"every second block of a line", half_of_line},
    {"one block in 10 of a line", tenth_of_line},
    {"one block in 30 of a line", thirtieth_of_line},
    {"one block in 100 of a line", hundredth_of_line},
    {"sessions, some forgotten", forgotten_sessions},
    {"short sessions, few forgotten", few_forgotten_sessions},
    {"long sessions, many forgotten", long_sessions_forgotten},
    {"a queue, half is taken", queue_half},
    {"a queue, most is taken", queue_nearly},
    {"a buffer grows by steps", buffer_by_steps},
    {"a buffer grows by half", buffer_by_half},
    {"a vector doubles", vector_doubles},
    {"many lists grow", many_lists},
    {"blocks are moved and kept", moved_and_kept},
    {"nodes and an array of a table", hash_table},
    {"begins late", begins_late},
    {"part of a line begins late", part_begins_late},
    {"in bursts", in_bursts},
    {"accelerates", accelerates},
    {"beside garbage of the line", beside_garbage},
    {"beside waves of the line", beside_waves},
    {"behind a full cache of the line", behind_a_cache},
    {"one of two is removed", half_removed},
    {"large blocks, rarely", large_and_rare},
    {"a cache without bound", cache_without_bound},
    {"connections never closed", never_closed},
    {"by shifts", by_shifts},
    {"entries are moved to fresh blocks", compacted},
};

} // namespace planted
} // namespace test
