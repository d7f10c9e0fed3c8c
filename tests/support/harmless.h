// Thirty programs that do not leak, and whose memory has an odd shape in time.
#pragma once

#include "simulated.h"

#include <cmath>

namespace test
{
namespace harmless
{

// A cache that evicts the oldest entry, or any, when it is full after this share of the run.
inline Behaviour cache(Simulated &s, double low, double high, bool oldest)
{
    return [herd = Herd(), most = (size_t)(s.between(low, high) * (double)s.all()),
            oldest](Simulated &now) mutable {
        herd.add(now.alloc(OWN, now.size(100)));
        if (herd.blocks.size() <= most) return;
        oldest ? herd.first_goes(now) : herd.any_goes(now);
    };
}

// A cache of slots that keys are hashed to: fast at first, ever slower, never beyond its slots.
inline Behaviour cache_of_slots(Simulated &s, double low, double high)
{
    return [slots = std::vector<void *>((size_t)(s.between(low, high) * (double)s.all()))](
               Simulated &now) mutable {
        void *&slot = slots[now.random.below(slots.size())];
        if (slot) now.free(slot);
        slot = now.alloc(OWN, now.size(100));
    };
}

// Names that are interned: those of a vocabulary, each as often as its place from the front allows.
inline Behaviour interned(Simulated &s, double share, double power)
{
    return [known = std::vector<bool>((size_t)(share * (double)s.all())), power](Simulated &now) mutable {
        const double u = now.between(0, 1);
        const auto word = (size_t)(std::pow(u, power) * (double)(known.size() - 1));
        if (known[word]) return now.flash(OWN, 1, 60);
        known[word] = true;
        now.alloc(OWN, now.size(60));
    };
}

inline Behaviour sessions(Simulated &s, double low, double high)
{
    return [herd = Herd(), life = s.between(low, high) * (double)s.all()](Simulated &now) mutable {
        herd.add(now.alloc(OWN, now.size(120)));
        herd.age(now, life);
    };
}

// It grows up to a level that changes with time.
inline Behaviour level(Simulated &s, double (*most)(double at, double a, double b))
{
    return [herd = Herd(), a = s.between(0, 1), b = s.between(0, 1), most,
            high = 0.2 * (double)s.all()](Simulated &now) mutable {
        const auto wanted = (size_t)(high * std::max(0.0, most(now.at(), a, b)));
        while (herd.blocks.size() > wanted)
            herd.any_goes(now);
        for (int i = 0; i < 4 && herd.blocks.size() < wanted; i++)
            herd.add(now.alloc(OWN, now.size(100)));
        now.flash(OWN, 1, 100);
    };
}

inline Behaviour fills_by_the_middle(Simulated &s)
{
    return cache(s, 0.3, 0.55, true);
}
inline Behaviour fills_until_late(Simulated &s)
{
    return cache(s, 0.6, 0.85, true);
}
inline Behaviour fills_any_evicted(Simulated &s)
{
    return cache(s, 0.4, 0.8, false);
}
inline Behaviour small_slots(Simulated &s)
{
    return cache_of_slots(s, 0.1, 0.25);
}
inline Behaviour many_slots(Simulated &s)
{
    return cache_of_slots(s, 0.3, 0.5);
}
inline Behaviour vocabulary(Simulated &s)
{
    return interned(s, s.between(0.1, 0.3), 1);
}
inline Behaviour skewed_vocabulary(Simulated &s)
{
    return interned(s, s.between(0.1, 0.3), 2.5);
}
inline Behaviour middle_sessions(Simulated &s)
{
    return sessions(s, 0.05, 0.15);
}
inline Behaviour long_sessions(Simulated &s)
{
    return sessions(s, 0.2, 0.35);
}
inline Behaviour waves(Simulated &s)
{
    return level(s, [](double at, double a, double b) {
        return 0.5 + 0.45 * std::sin(6.2832 * (at / (0.25 + 0.4 * a) + b));
    });
}
inline Behaviour day(Simulated &s)
{
    return level(s, [](double at, double a, double) {
        return 0.5 - 0.45 * std::cos(6.2832 * at / (1 + 0.3 * a));
    });
}
inline Behaviour late_step(Simulated &s)
{
    return level(s, [](double at, double a, double) { return at < 0.4 + 0.4 * a ? 0.3 : 0.9; });
}
inline Behaviour early_steps(Simulated &s)
{
    return level(s, [](double at, double a, double) {
        return 0.2 * (1 + std::floor(std::min(at, 0.45 + 0.2 * a) / 0.12));
    });
}
inline Behaviour ramp_ends(Simulated &s)
{
    return level(s, [](double at, double a, double) { return std::min(1.0, at / (0.5 + 0.3 * a)); });
}
inline Behaviour up_and_down(Simulated &s)
{
    return level(s, [](double at, double a, double) {
        const double top = 0.4 + 0.4 * a;
        return at < top ? at / top : 1 - (at - top) / top;
    });
}
inline Behaviour down_and_up(Simulated &s)
{
    return level(s, [](double at, double a, double) { return std::fabs(at - 0.35 - 0.2 * a) + 0.2; });
}
inline Behaviour late_batch(Simulated &s)
{
    return level(s, [](double at, double a, double) {
        const double from = 0.45 + 0.15 * a;
        return at < from ? 0.05 : std::min(0.8, 0.05 + 5 * (at - from));
    });
}

// It is emptied all at once.
inline Behaviour emptied(Simulated &s, double low, double high)
{
    return [herd = Herd(), every = (size_t)(s.between(low, high) * (double)s.all()),
            left = s.random.below(s.all() / 5)](Simulated &now) mutable {
        herd.add(now.alloc(OWN, now.size(100)));
        if (left--) return;
        left = every;
        herd.clear(now);
    };
}
inline Behaviour teeth(Simulated &s)
{
    return emptied(s, 0.15, 0.4);
}
inline Behaviour small_teeth(Simulated &s)
{
    return emptied(s, 0.01, 0.08);
}

// Collected when as much again is there as lived before, of which a part that changes stays.
inline Behaviour collected(Simulated &s)
{
    return [herd = Herd(), base = s.between(0.02, 0.05) * (double)s.all(), next = 0.0](Simulated &now) mutable {
        herd.add(now.alloc(OWN, now.size(100)));
        if (next < base) next = base;
        if ((double)herd.blocks.size() < next) return;
        herd.keep_last(now, (size_t)(base * now.between(0.2, 0.6)));
        next = (double)herd.blocks.size() + base;
    };
}

inline Behaviour ring(Simulated &s)
{
    return [slots = std::vector<void *>(200 + s.random.below(2000)), at = (size_t)0](Simulated &now) mutable {
        void *&slot = slots[at++ % slots.size()];
        if (slot) now.free(slot);
        slot = now.alloc(OWN, now.size(100));
    };
}

// A log that grows by realloc to its length, and begins again.
inline Behaviour rotated(Simulated &s)
{
    return [p = (void *)nullptr, used = (size_t)0, room = (size_t)0,
            most = (size_t)(s.between(0.1, 0.35) * (double)s.all() * 60 * s.scale)](Simulated &now) mutable {
        used += now.size(60);
        if (used > most) {
            now.free(p);
            p = nullptr;
            used = now.size(60);
            room = 0;
        }
        if (used <= room) return;
        room = std::max(used, room + room / 2);
        p = now.resize(OWN, p, room);
    };
}

// A vector that doubles until all is in it.
inline Behaviour vector_filled(Simulated &s)
{
    return [p = (void *)nullptr, used = (size_t)0, room = (size_t)0,
            until = s.between(0.2, 0.45)](Simulated &now) mutable {
        if (now.at() > until) return;
        used += now.size(60);
        if (used <= room) return;
        room = std::max(used, 2 * room);
        p = now.resize(OWN, p, room);
    };
}

// Work that comes in crowds and is done at a steady pace.
inline Behaviour crowds(Simulated &s)
{
    return [queue = Herd(), every = (size_t)(s.between(0.05, 0.2) * (double)s.all()),
            left = (size_t)0](Simulated &now) mutable {
        if (!left--) {
            left = every;
            for (size_t i = every * 3 / 4; i; i--)
                queue.add(now.alloc(OWN, now.size(100)));
        }
        queue.first_goes(now);
    };
}

// A queue that is as often longer as it is shorter.
inline Behaviour wanders(Simulated &)
{
    return [queue = Herd()](Simulated &now) mutable {
        if (queue.blocks.size() < 200 || now.one_in(2)) queue.add(now.alloc(OWN, now.size(100)));
        else queue.first_goes(now);
        if (queue.blocks.size() > 800) queue.first_goes(now);
    };
}

// What is freed waits for a batch.
inline Behaviour freed_in_batches(Simulated &s)
{
    return [waiting = Herd(), period = 2 + (unsigned)s.random.below(4)](Simulated &now) mutable {
        waiting.add(now.alloc(OWN, now.size(100)));
        if (now.request == 0 && now.window % period == 0) waiting.clear(now);
    };
}

// Two generations: one is filled while the other one is in use.
inline Behaviour generations(Simulated &s)
{
    return [fresh = Herd(), old = Herd(), most = (size_t)(s.between(0.08, 0.3) * (double)s.all())](
               Simulated &now) mutable {
        fresh.add(now.alloc(OWN, now.size(100)));
        if (fresh.blocks.size() < most) return;
        old.clear(now);
        std::swap(fresh.blocks, old.blocks);
    };
}

// All of it is there at the beginning; little of it is replaced.
inline Behaviour slowly_replaced(Simulated &s)
{
    Herd herd;
    for (size_t i = 0; i < s.all() / 8; i++)
        herd.add(s.alloc(OWN, s.size(100)));
    return [herd, n = 8 + s.random.below(30)](Simulated &now) mutable {
        if (!now.one_in(n)) return;
        herd.any_goes(now);
        herd.add(now.alloc(OWN, now.size(100)));
    };
}

// Few large blocks of very different sizes.
inline Behaviour few_large(Simulated &s)
{
    return [herd = Herd(), most = 10 + s.random.below(30), n = s.requests / 4](Simulated &now) mutable {
        if (!now.one_in(n)) return;
        herd.add(now.alloc(OWN, now.size((size_t)(200 * std::exp(now.between(0, 4))))));
        if (herd.blocks.size() > most) herd.any_goes(now);
    };
}

// Steps that can be undone, up to a number; some are large.
inline Behaviour undo(Simulated &s)
{
    return [herd = Herd(), most = (size_t)(s.between(0.1, 0.4) * (double)s.all() / 5)](Simulated &now) mutable {
        if (!now.one_in(5)) return now.flash(OWN, 1, 200);
        herd.add(now.alloc(OWN, now.size(now.one_in(20) ? 2000 : 100)));
        herd.keep_last(now, most);
    };
}

inline const Shape shapes[] = {
    {"a cache, full by the middle", fills_by_the_middle},
    {"a cache, full late", fills_until_late},
    {"a cache, full late, any entry goes", fills_any_evicted},
    {"a cache of few slots", small_slots},
    {"a cache of many slots", many_slots},
    {"a vocabulary", vocabulary},
    {"a vocabulary, skewed", skewed_vocabulary},
    {"middle sessions", middle_sessions},
    {"long sessions", long_sessions},
    {"waves", waves},
    {"a day", day},
    {"a late step", late_step},
    {"early steps", early_steps},
    {"a ramp that ends", ramp_ends},
    {"up and down", up_and_down},
    {"down and up", down_and_up},
    {"a late batch", late_batch},
    {"teeth", teeth},
    {"small teeth", small_teeth},
    {"collected", collected},
    {"a ring", ring},
    {"a log that rotates", rotated},
    {"a vector that is filled", vector_filled},
    {"crowds", crowds},
    {"a queue that wanders", wanders},
    {"freed in batches", freed_in_batches},
    {"two generations", generations},
    {"slowly replaced", slowly_replaced},
    {"few large blocks", few_large},
    {"steps to undo", undo},
};

} // namespace harmless
} // namespace test
