// Two threads of one host: the same tenant, each its own, blocks and memories of the other.
#include "wasm_test.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace test;

namespace
{

// Runs fn(0) and fn(1) at the same time.
template <typename Fn>
void both(Fn fn)
{
    std::thread other([&] { fn(1); });
    fn(0);
    other.join();
}

// Checks of Catch are for one thread.
struct Verdict {
    std::atomic<int> wrong{0};
    void check(bool right)
    {
        wrong += !right;
    }
};

} // namespace

TEST_CASE("10,000 memories and tenants are made and ended on two threads", "[threads]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        HostOptions options;
        options.bounds = bounds;
        options.warm_bytes = MIB;
        Host host(&options);
        Verdict verdict;
        both([&](int thread) {
            for (int i = 0; i < 5000; i++) {
                hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
                Scope scope(tenant);
                size_t n = size_t(1 + i % 3) * WASM_PAGE;
                char *p = static_cast<char *>(hak_wasm_memory_new(host, n));
                void *block = hak_wasm_alloc(host, 3000);
                verdict.check(p != nullptr && block != nullptr);
                for (size_t at = 0; at < n; at += 8192)
                    verdict.check(p[at] == 0);
                for (size_t at = 0; at < n; at += 16384)
                    p[at] = char(thread + 1);
                if (i % 7 == 0) verdict.check(hak_wasm_memory_grow(host, p, n + WASM_PAGE) == 0);
                if (i % 100 == 0) hak_wasm_host_tick(host, 0);
                if (i % 2) {
                    hak_wasm_memory_free(host, p);
                    hak_wasm_free(host, block);
                }
                hak_wasm_tenant_close(tenant, i % 2 ? HAK_WASM_RETIRE : HAK_WASM_BULK);
            }
        });
        CHECK(verdict.wrong == 0);
        CHECK(host.info().live == 0);
        CHECK(host.info().warm_bytes <= MIB);
        CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0);
        hak_wasm_host_trim(host);
        CHECK(host.info().warm_bytes == 0);
    }
}

TEST_CASE("limits hold under two threads of one tenant", "[threads]")
{
    Host host;
    TenantOptions options;
    options.limits = {256 * KIB, false, 8 * WASM_PAGE, 3};
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    Verdict verdict;
    std::atomic<size_t> bytes{0}, refused{0};
    std::atomic<int> instances{0};
    both([&](int) {
        Scope scope(tenant);
        for (int i = 0; i < 3000; i++) {
            // counted here after it was counted there, and given back here first
            if (hak_wasm_admit(tenant) == 0) {
                verdict.check(++instances <= 3);
                void *p = hak_wasm_memory_new(host, size_t(1 + i % 6) * WASM_PAGE);
                if (p != nullptr) {
                    size_t n = hak_wasm_memory_size(host, p);
                    verdict.check((bytes += n) <= 8 * WASM_PAGE);
                    bytes -= n;
                    hak_wasm_memory_free(host, p);
                } else {
                    refused++;
                }
                instances--;
                hak_wasm_dismiss(tenant);
            }
            std::vector<void *> blocks;
            for (int j = 0; j < 20; j++)
                blocks.push_back(hak_wasm_alloc(host, 20000));
            for (void *p : blocks)
                hak_wasm_free(host, p);
        }
    });
    CHECK(verdict.wrong == 0);
    hak_wasm_tenant_info info = info_of(tenant);
    CHECK(info.linear_peak <= 8 * WASM_PAGE);
    CHECK(info.instances_peak <= 3);
    CHECK(info.linear_bytes == 0);
    CHECK(info.heap_live == 0);
    CHECK(info.heap_committed <= 256 * KIB);
    CHECK(info.heap_failures > 0);
    CHECK(refused == info.linear_refused);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("blocks and memories may be freed by another thread, after the tenant was closed too", "[threads]")
{
    Host host;
    Verdict verdict;
    for (int round = 0; round < 200; round++) {
        hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
        std::vector<void *> blocks, memories;
        {
            Scope scope(tenant);
            for (int i = 0; i < 50; i++)
                blocks.push_back(hak_wasm_alloc(host, 100));
            for (int i = 0; i < 4; i++)
                memories.push_back(hak_wasm_memory_new(host, WASM_PAGE));
        }
        both([&](int thread) {
            if (thread == 0) hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
            for (size_t i = size_t(thread); i < blocks.size(); i += 2)
                hak_wasm_free(host, blocks[i]);
            for (size_t i = size_t(thread); i < memories.size(); i += 2)
                verdict.check(hak_wasm_memory_free(host, memories[i]) == 0);
        });
    }
    CHECK(verdict.wrong == 0);
    CHECK(host.info().live == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).heap_live == 0);
}

TEST_CASE("an image serves two threads, and statistics are read beside them", "[threads]")
{
    Host host;
    const size_t n = 2 * WASM_PAGE;
    char *p = static_cast<char *>(hak_wasm_memory_new(host, n));
    std::memset(p, 0x5A, n);
    hak_wasm_image *image = hak_wasm_image_take(host, p);
    hak_wasm_memory_free(host, p);
    Verdict verdict;
    both([&](int thread) {
        for (int i = 0; i < 1000; i++) {
            char *q = static_cast<char *>(hak_wasm_memory_adopt(host, image));
            for (size_t at = 0; at < n; at += 4096) {
                verdict.check(q[at] == 0x5A);
                q[at] = char(thread);
            }
            verdict.check(hak_wasm_memory_reset(host, q, image) == 0 && q[4096] == 0x5A);
            q[0] = 1;
            hak_wasm_memory_free(host, q);
            char *plain = static_cast<char *>(hak_wasm_memory_new(host, n));
            verdict.check(plain[0] == 0 && plain[n - 1] == 0);
            hak_wasm_memory_free(host, plain);
            if (i % 10 == 0) {
                hak_wasm_host_info info = {};
                info.size = sizeof info;
                verdict.check(hak_wasm_host_stats(host, &info) == 0);
                hak_wasm_tenant_resident(hak_wasm_host_tenant(host));
                hak_wasm_tenant_proportional(hak_wasm_host_tenant(host));
            }
        }
    });
    CHECK(verdict.wrong == 0);
    hak_wasm_image_drop(image);
    CHECK(host.info().image_bytes == 0);
}

TEST_CASE("a request that fits is granted beside tenants that are refused", "[threads]")
{
    // Of the group's 18 and the host's 13, one big request and one of 4 always fit; two big ones never do.
    HostOptions options;
    options.limits.linear_bytes = 13 * MIB;
    Host host(&options);
    TenantOptions group_options;
    group_options.children = true;
    group_options.limits.linear_bytes = 18 * MIB;
    hak_wasm_tenant *group = hak_wasm_tenant_new(host, &group_options);
    TenantOptions child;
    child.parent = group;
    hak_wasm_tenant *small = hak_wasm_tenant_new(host, &child);
    std::atomic<bool> over{false};
    std::vector<std::thread> others;
    for (size_t bytes : {8 * MIB, 8 * MIB, 14 * MIB}) {
        others.emplace_back([&, bytes] {
            hak_wasm_tenant *big = hak_wasm_tenant_new(host, &child);
            Scope scope(big);
            while (!over) {
                if (hak_wasm_charge(big, bytes) == 0) hak_wasm_uncharge(big, bytes);
                if (void *p = hak_wasm_memory_new(host, bytes)) hak_wasm_memory_free(host, p);
            }
            hak_wasm_tenant_close(big, HAK_WASM_RETIRE);
        });
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    int refused = 0;
    {
        Scope scope(small);
        for (int i = 0; std::chrono::steady_clock::now() < end; i++) {
            if (hak_wasm_charge(small, 4 * MIB) == 0) hak_wasm_uncharge(small, 4 * MIB);
            else refused++;
            if (i % 10 != 0) continue;
            void *p = hak_wasm_memory_new(host, 2 * MIB);
            if (p == nullptr || hak_wasm_memory_grow(host, p, 4 * MIB) != 0) refused++;
            hak_wasm_memory_free(host, p);
        }
    }
    over = true;
    for (std::thread &other : others)
        other.join();
    CHECK(refused == 0);
    CHECK(info_of(small).linear_peak == 4 * MIB);
    CHECK(info_of(group).linear_peak <= 12 * MIB);
    CHECK(info_of(group).linear_bytes == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_peak <= 12 * MIB);
    hak_wasm_tenant_close(small, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(group, HAK_WASM_RETIRE);
}

TEST_CASE("nothing that is written to a memory after its rest is lost to a tick", "[threads]")
{
    for (hak_wasm_bounds bounds : {HAK_WASM_FLAT, HAK_WASM_GUARD}) {
        HostOptions options;
        options.bounds = bounds;
        Host host(&options);
        Verdict verdict;
        std::atomic<bool> over{false};
        std::thread ticker([&] {
            while (!over)
                hak_wasm_host_trim(host);
        });
        both([&](int thread) {
            char *p = static_cast<char *>(hak_wasm_memory_new(host, WASM_PAGE));
            std::memset(p, 9, WASM_PAGE / 2);
            hak_wasm_image *image = hak_wasm_image_take(host, p);
            for (int i = 0; i < 3000; i++) {
                const size_t at = size_t(i) * 4099 % WASM_PAGE;
                verdict.check(p[at] == (at < WASM_PAGE / 2 ? 9 : 0));
                p[at] = char(thread + 1);
                p[WASM_PAGE - 1] = 5;
                if (i % 5 == 0) std::this_thread::yield();
                verdict.check(p[at] == (at == WASM_PAGE - 1 ? 5 : thread + 1));
                verdict.check(hak_wasm_memory_rest(host, p, image) == 0);
                if (i % 3 == 0) std::this_thread::yield();
                verdict.check(hak_wasm_memory_wake(host, p) == 0);
            }
            hak_wasm_memory_rest(host, p, image);
            hak_wasm_memory_free(host, p);
            hak_wasm_image_drop(image);
        });
        over = true;
        ticker.join();
        CHECK(verdict.wrong == 0);
        CHECK(host.info().resting == 0);
        CHECK(host.info().live == 0);
    }
}
