// Programs for verdicts on growth: each serves requests in windows on a clock that the test moves, beside
// others that are busy and keep nothing. The same program runs small, for exact profiles, and large, for
// samples of 64 and 512 KiB.
#pragma once

#include "profiled.h"

#include <deque>

namespace test
{

// The sites of what is planted; all above are the program's own, all below those of its background.
enum : hak_site { PLANTED = 100, PLANTED_TOO = 101, OWN = 110 };

struct Simulated {
    hak_ctx *ctx;
    FakeOs &os;
    Random random;
    double scale; // of the sizes of blocks
    unsigned windows, requests;
    unsigned window = 0, request = 0;

    // The share of the run that is over.
    double at() const
    {
        return ((double)window + (double)request / requests) / windows;
    }
    bool one_in(size_t n)
    {
        return random.below(n) == 0;
    }
    bool chance(double share)
    {
        return (double)random.below(1 << 20) < share * (1 << 20);
    }
    double between(double low, double high)
    {
        return low + (high - low) * (double)random.below(1 << 20) / (1 << 20);
    }
    // Half to one and a half times `base`, in the program's scale.
    size_t size(size_t base)
    {
        return (size_t)((double)(base / 2 + random.below(base + 1)) * scale);
    }
    size_t scaled(size_t n) const
    {
        return (size_t)((double)n * scale);
    }
    void *alloc(hak_site site, size_t n)
    {
        void *p = hak_alloc_cs(ctx, n, 0, site);
        if (!p) FAIL("no memory");
        return p;
    }
    void *resize(hak_site site, void *p, size_t n)
    {
        void *q = hak_realloc_cs(ctx, p, n, 0, site);
        if (!q) FAIL("no memory");
        return q;
    }
    void free(void *p)
    {
        hak_free(ctx, p);
    }
    // So many blocks that are gone at once.
    void flash(hak_site site, size_t count, size_t base)
    {
        for (; count; count--)
            free(alloc(site, size(base)));
    }
    size_t all() const
    {
        return (size_t)windows * requests;
    }
};

// Blocks that live for some time.
struct Herd {
    std::deque<void *> blocks;
    double owed = 0;

    void add(void *p)
    {
        blocks.push_back(p);
    }
    bool empty() const
    {
        return blocks.empty();
    }
    void first_goes(Simulated &s)
    {
        if (blocks.empty()) return;
        s.free(blocks.front());
        blocks.pop_front();
    }
    void any_goes(Simulated &s)
    {
        if (blocks.empty()) return;
        std::swap(blocks[s.random.below(blocks.size())], blocks.back());
        s.free(blocks.back());
        blocks.pop_back();
    }
    void keep_last(Simulated &s, size_t most)
    {
        while (blocks.size() > most)
            first_goes(s);
    }
    // One request of a life that is `requests` long on average.
    void age(Simulated &s, double requests)
    {
        for (owed += (double)blocks.size() / requests; owed >= 1; owed -= 1)
            any_goes(s);
    }
    void clear(Simulated &s)
    {
        keep_last(s, 0);
    }
};

// What a program does at each request.
using Behaviour = std::function<void(Simulated &)>;
struct Shape {
    const char *name;
    Behaviour (*make)(Simulated &s);
};

// Requests and answers, sessions, a table of the beginning, a cache that is full early.
inline Behaviour background(Simulated &s)
{
    for (int i = 0; i < 100; i++)
        s.alloc(1, s.size(400));
    return [herd = Herd(), cache = Herd(), life = s.between(0.01, 0.1) * (double)s.all(),
            most = (size_t)(s.between(0.03, 0.2) * (double)s.all())](Simulated &now) mutable {
        now.flash(2 + now.random.below(5), 3, 100);
        herd.add(now.alloc(7, now.size(80)));
        herd.age(now, life);
        cache.add(now.alloc(8, now.size(60)));
        cache.keep_last(now, most);
    };
}

} // namespace test
