// Every allocation of load, instantiate, call, snapshot and reset fails once: no crash, no leak.
#include "wamr_test.h"

using namespace test;

namespace
{

// In front of the adapter's functions: the n-th request fails.
struct Failing {
    MemAllocOption inner;
    long countdown = -1; // < 0: nothing fails

    bool fails()
    {
        return countdown >= 0 && countdown-- == 0;
    }
};

template <typename Fn>
Fn *function(void *p)
{
    Fn *fn;
    std::memcpy(&fn, &p, sizeof fn);
    return fn;
}
template <typename Fn>
void *object(Fn *fn)
{
    void *p;
    std::memcpy(&p, &fn, sizeof p);
    return p;
}

void *allocate(mem_alloc_usage_t usage, void *user, unsigned size)
{
    auto *f = static_cast<Failing *>(user);
    auto *fn = function<void *(mem_alloc_usage_t, void *, unsigned)>(f->inner.allocator.malloc_func);
    return f->fails() ? nullptr : fn(usage, f->inner.allocator.user_data, size);
}

void *reallocate(mem_alloc_usage_t usage, bool full, void *user, void *p, unsigned size)
{
    auto *f = static_cast<Failing *>(user);
    auto *fn =
        function<void *(mem_alloc_usage_t, bool, void *, void *, unsigned)>(f->inner.allocator.realloc_func);
    return f->fails() ? nullptr : fn(usage, full, f->inner.allocator.user_data, p, size);
}

void release(mem_alloc_usage_t usage, void *user, void *p)
{
    auto *f = static_cast<Failing *>(user);
    function<void(mem_alloc_usage_t, void *, void *)>(f->inner.allocator.free_func)(
        usage, f->inner.allocator.user_data, p);
}

// WAMR on a host, with failures between them.
struct FailingWamr : Host {
    Failing failing;

    FailingWamr()
    {
        RuntimeInitArgs args = {};
        hak_wasm_wamr_args(host, &args);
        failing.inner = args.mem_alloc_option;
        args.mem_alloc_option.allocator.malloc_func = object(allocate);
        args.mem_alloc_option.allocator.realloc_func = object(reallocate);
        args.mem_alloc_option.allocator.free_func = object(release);
        args.mem_alloc_option.allocator.user_data = &failing;
        REQUIRE(wasm_runtime_full_init(&args));
    }
    ~FailingWamr()
    {
        wasm_runtime_destroy();
    }
};

// A guest's life as far as it goes; whether it went all the way.
bool live(hak_wasm_tenant *tenant, const Bytes &content, std::vector<const char *> calls)
{
    Bytes bytes = content;
    char error[128];
    wasm_module_t module =
        hak_wasm_wamr_load(tenant, bytes.data(), uint32_t(bytes.size()), error, sizeof error);
    if (module == nullptr) return false;
    bool whole = false;
    hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant, module, 32768, error, sizeof error);
    if (guest != nullptr) {
        const char *why;
        hak_wasm_wamr_snapshot *snapshot = hak_wasm_wamr_take(guest, &why);
        whole = snapshot != nullptr;
        for (const char *function : calls) {
            uint32_t argv[1] = {1};
            whole = hak_wasm_wamr_call(guest, function, 1, argv) && whole;
            whole = (argv[0] != UINT32_MAX) && whole;
        }
        if (snapshot != nullptr) whole = hak_wasm_wamr_reset(guest, snapshot) >= 0 && whole;
        hak_wasm_wamr_drop(snapshot);
        hak_wasm_wamr_close(guest);
    }
    wasm_runtime_unload(module);
    return whole;
}

// Fails the first request, then the second, ... until a life is whole.
long fail_all(const char *guest, std::vector<const char *> calls)
{
    FailingWamr host;
    Tenant tenant = new_tenant(host);
    const Bytes content = read_guest(guest);
    REQUIRE(live(tenant.get(), content, calls));
    REQUIRE(info_of(tenant.get()).heap_live == 0);
    long failed = 0, tolerated = 0;
    for (long n = 0;; n++) {
        host.failing.countdown = n;
        bool whole = live(tenant.get(), content, calls);
        bool injected = host.failing.countdown < 0;
        host.failing.countdown = -1;
        hak_wasm_tenant_info info = info_of(tenant.get());
        INFO("failure " << n << " of " << guest);
        REQUIRE(info.heap_live == 0);
        REQUIRE(info.linear_bytes == 0);
        REQUIRE(info.instances == 0);
        REQUIRE(host.info().image_bytes == 0);
        if (!injected) {
            REQUIRE(whole);
            break;
        }
        failed++;
        tolerated += whole;
    }
    CHECK(tolerated <= failed / 10); // a failure is seen, but for a few that the runtime has a way around
    REQUIRE(live(tenant.get(), content, calls));
    return failed;
}

} // namespace

TEST_CASE("every allocation of a small guest fails once", "[failure]")
{
    CHECK(fail_all("small", {"init", "handle", "grow", "pages"}) > 500);
}

TEST_CASE("every allocation of a guest with tables and segments fails once", "[failure]")
{
    CHECK(fail_all("state", {"sum", "change", "sum"}) > 50);
}

TEST_CASE("every allocation of a guest with files fails once", "[failure]")
{
    CHECK(fail_all("files", {"is_open"}) > 50);
}

TEST_CASE("every limit on the heap fails a life cleanly", "[failure]")
{
    Wamr host;
    const Bytes content = read_guest("small");
    long failed = 0;
    for (size_t limit = 32 * KIB;; limit += 16 * KIB) {
        TenantOptions options;
        options.limits.heap_bytes = limit;
        Tenant tenant = new_tenant(host, &options);
        bool whole = live(tenant.get(), content, {"init", "pages"});
        hak_wasm_tenant_info info = info_of(tenant.get());
        INFO("limit " << limit);
        REQUIRE(info.heap_live == 0);
        REQUIRE(info.linear_bytes == 0);
        REQUIRE(info.heap_committed <= limit);
        if (whole) break;
        failed++;
    }
    CHECK(failed > 2);
}
