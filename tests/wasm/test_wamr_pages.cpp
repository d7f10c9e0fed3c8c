// Every n-th request for pages is refused while WAMR runs guests: from its initialisation to its end.
#include "pages_test.h"
#include "wamr_test.h"

#include <thread>

using namespace test;

namespace
{

struct Program {
    const char *guest;
    std::vector<const char *> calls;
};

// A guest's life as far as it goes: what is refused has a text.
void run(hak_wasm_tenant *tenant, wasm_module_t module, const Program &program, Course *course)
{
    char error[128] = "";
    hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant, module, 32768, error, sizeof error);
    course->need(guest);
    if (!guest) {
        course->require(error[0], "an instance is refused without a word");
        return;
    }
    const char *why = nullptr;
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_wamr_take(guest, &why);
    course->need(snapshot);
    if (!snapshot) course->require(why, "a snapshot is refused without a word");
    for (const char *function : program.calls) {
        uint32_t argv[1] = {1};
        const bool ok = hak_wasm_wamr_call(guest, function, 1, argv);
        course->need(ok && argv[0] != UINT32_MAX);
        if (!ok) course->require(hak_wasm_wamr_exception(guest), "a trap without a word");
    }
    if (snapshot) course->need(hak_wasm_wamr_reset(guest, snapshot) >= 0);
    hak_wasm_wamr_drop(snapshot);
    hak_wasm_wamr_close(guest);
}

void serve(hak_wasm_host *host, const Bytes &content, const Program &program, int threads, Course *course)
{
    hak_wasm_tenant *owner = hak_wasm_tenant_new(host, nullptr);
    course->need(owner);
    if (!owner) return;
    Bytes bytes = content;
    char error[128] = "";
    wasm_module_t module =
        hak_wasm_wamr_load(owner, bytes.data(), uint32_t(bytes.size()), error, sizeof error);
    course->need(module);
    if (!module) course->require(error[0], "a module is refused without a word");
    std::vector<Course> courses(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    for (Course &c : courses) {
        if (!module) break;
        others.emplace_back([&c, host, module, &program] {
            hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
            c.need(tenant);
            if (!tenant) return;
            for (int i = 0; i < 3; i++)
                run(tenant, module, program, &c);
            require_empty(tenant, &c);
            hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
        });
    }
    if (module) run(owner, module, program, course);
    for (std::thread &t : others)
        t.join();
    for (const Course &c : courses)
        course->add(c);
    if (module) wasm_runtime_unload(module);
    require_empty(owner, course);
    hak_wasm_tenant_close(owner, HAK_WASM_RETIRE);
}

Course live(size_t guard, const Bytes &content, const Program &program, int threads, Refusal &refusal)
{
    Course course;
    HostOptions options;
    options.slot_bytes = MIB;
    options.guard_bytes = guard;
    options.extent_bytes = MIB + guard; // a memory each
    hak_wasm_host *host = hak_wasm_host_new(&options);
    course.need(host);
    if (!host) return course;
    RuntimeInitArgs args = {};
    hak_wasm_wamr_args(host, &args);
    const bool begun = wasm_runtime_full_init(&args);
    course.need(begun);
    if (begun) {
        serve(host, content, program, threads, &course);
        if (!refusal.lasts) {
            refusal.end();
            Course again;
            serve(host, content, program, threads, &again);
            again.require(again.whole, "the host does not recover");
            hak_wasm_host_trim(host);
            require_empty(host, &again);
            course.add(again);
        }
        wasm_runtime_destroy();
    }
    course.require(info_of(hak_wasm_host_tenant(host)).heap_live == 0, "the runtime leaves blocks");
    hak_wasm_host_delete(host);
    return course;
}

int refuse_all(size_t guard, const Program &program, int threads)
{
    const Bytes content = read_guest(program.guest);
    return each_request([&](Refusal &r) { return live(guard, content, program, threads, r); });
}

} // namespace

TEST_CASE("every request for pages under WAMR is refused once", "[pages]")
{
    for (size_t guard : {size_t(0), WASM_PAGE}) {
        CHECK(refuse_all(guard, {"small", {"init", "handle", "grow", "pages"}}, 0) > 5);
        CHECK(refuse_all(guard, {"state", {"sum", "change", "sum"}}, 0) > 5);
        CHECK(refuse_all(guard, {"files", {"is_open"}}, 0) > 5);
    }
}

TEST_CASE("requests for pages under WAMR on three threads are refused", "[pages]")
{
    CHECK(refuse_all(WASM_PAGE, {"small", {"init", "handle", "grow", "pages"}}, 2) > 5);
}
