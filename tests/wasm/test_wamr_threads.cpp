// WAMR guests on two threads, and very many of them.
#include "slow_build.h"
#include "wamr_test.h"

#include <atomic>
#include <thread>

using namespace test;

namespace
{

#ifdef TEST_SLOW_BUILD
constexpr bool SANITIZED = true;
#else
constexpr bool SANITIZED = false;
#endif

size_t available_memory()
{
    std::ifstream in("/proc/meminfo");
    std::string word;
    while (in >> word) {
        if (word != "MemAvailable:") continue;
        size_t kib = 0;
        in >> kib;
        return kib * KIB;
    }
    return 0;
}

size_t mappings()
{
    std::ifstream in("/proc/self/maps");
    return size_t(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

} // namespace

TEST_CASE("10,000 instances on two threads, each with its own tenant", "[threads]")
{
    HostOptions options;
    options.warm_bytes = 2 * MIB;
    Wamr host(&options);
    std::atomic<int> wrong{0};
    Tenant owner = new_tenant(host);
    Module module(owner.get(), "small");
    auto work = [&](uint32_t thread) {
        char error[128];
        uint32_t answer = 0;
        for (int i = 0; i < 5000; i++) {
            hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
            hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant, module, 16384, error, sizeof error);
            uint32_t argv[1] = {thread};
            bool ok = guest != nullptr;
            if (ok && i % 10 == 0) {
                ok = hak_wasm_wamr_call(guest, "init", 0, nullptr) &&
                     hak_wasm_wamr_call(guest, "handle", 1, argv);
                if (i == 0) answer = argv[0];
                ok = ok && argv[0] == answer;
            }
            hak_wasm_wamr_close(guest);
            hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
            wrong += !ok;
        }
    };
    std::thread other(work, 1);
    work(2);
    other.join();
    CHECK(wrong == 0);
    CHECK(host.info().live == 0);
    CHECK(host.info().warm_bytes <= 2 * MIB);
    hak_wasm_tenant_info root = info_of(hak_wasm_host_tenant(host));
    CHECK(root.instances == 0);
    CHECK(root.linear_bytes == 0);
    CHECK(info_of(owner.get()).label[HAK_WASM_INSTANCE].live_blocks == 0);
}

TEST_CASE("40,000 instances live at once, in a few mappings", "[live]")
{
    if (SANITIZED || available_memory() < 4096 * MIB) {
        WARN("left out: under a sanitizer, or less than 4 GiB of memory available");
        return;
    }
    Wamr host;
    Tenant tenant = new_tenant(host);
    Module module(tenant.get(), "state");
    const size_t before = mappings();
    std::vector<hak_wasm_wamr *> guests;
    char error[128];
    for (int i = 0; i < 40000; i++) {
        hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant.get(), module, 4096, error, sizeof error);
        if (guest == nullptr) break;
        guests.push_back(guest);
    }
    INFO(error);
    CHECK(guests.size() == 40000);
    uint32_t sums[2] = {};
    CHECK(hak_wasm_wamr_call(guests.front(), "sum", 0, &sums[0]));
    CHECK(hak_wasm_wamr_call(guests.back(), "change", 0, nullptr));
    CHECK(hak_wasm_wamr_call(guests.front(), "sum", 0, &sums[1]));
    CHECK(sums[0] == sums[1]);
    CHECK(mappings() - before < 1000);
    CHECK(host.info().live == guests.size());
    CHECK(info_of(tenant.get()).instances == guests.size());
    for (hak_wasm_wamr *guest : guests)
        hak_wasm_wamr_close(guest);
    CHECK(host.info().live == 0);
}
