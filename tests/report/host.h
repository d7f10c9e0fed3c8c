// A heap of a host in C, for the tests of hakmem/report.h and hakmem/reserve.h.
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include "catch.h"

#include <hakmem/hakmem.h>

struct Heap {
    hak_ctx *ctx;
    explicit Heap(const char *name = "vm", bool shared = false)
    {
        hak_options options = HAK_OPTIONS_INIT;
        options.name = name;
        options.shared = shared;
        ctx = hak_ctx_new(nullptr, &options);
        REQUIRE(ctx);
    }
    Heap(const Heap &) = delete;
    ~Heap()
    {
        hak_ctx_destroy(ctx);
    }
};

inline size_t committed(const hak_ctx *ctx)
{
    hak_stats stats = {};
    stats.size = sizeof stats;
    REQUIRE(hak_ctx_stats(ctx, &stats) == 0);
    return stats.committed_bytes;
}

#endif
