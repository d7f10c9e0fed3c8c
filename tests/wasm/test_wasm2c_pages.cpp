// Every n-th request for pages is refused while guests that were compiled to C run.
#include "pages_test.h"
#include "wasm2c_test.h"

extern "C" {
#include "small.h"
#include "state.h"
}

using namespace test;

namespace
{

Z_small_instance_t small;
Z_state_instance_t state;

void run_small(Course *course)
{
    std::memset(&small, 0, sizeof small);
    const int trap = trapped([] { Z_small_instantiate(&small); });
    course->need(trap == WASM_RT_TRAP_NONE);
    course->require(trap == WASM_RT_TRAP_NONE || trap == WASM_RT_TRAP_OOB, "another trap");
    if (trap == WASM_RT_TRAP_NONE) {
        Z_smallZ_init(&small);
        const char *why = nullptr;
        hak_wasm_wasm2c_snapshot *snapshot = hak_wasm_wasm2c_take(&small, sizeof small, &why);
        course->need(snapshot);
        if (!snapshot) course->require(why, "a snapshot is refused without a word");
        const uint32_t answer = Z_smallZ_handle(&small, 3);
        const uint32_t before = Z_smallZ_grow(&small, 4);
        course->require(before == 3 || before == UINT32_MAX, "growth");
        course->need(before == 3);
        course->require(Z_smallZ_pages(&small) == (before == 3 ? 7u : 3u), "pages after growth");
        if (snapshot) {
            const bool back = hak_wasm_wasm2c_reset(&small, snapshot) == 0;
            course->need(back);
            if (back) course->require(Z_smallZ_handle(&small, 3) == answer, "not what it was");
        }
        hak_wasm_wasm2c_drop(snapshot);
    }
    Z_small_free(&small);
}

void run_state(Course *course)
{
    std::memset(&state, 0, sizeof state);
    const int trap = trapped([] { Z_state_instantiate(&state); });
    course->need(trap == WASM_RT_TRAP_NONE);
    course->require(trap == WASM_RT_TRAP_NONE || trap == WASM_RT_TRAP_OOB, "another trap");
    if (trap == WASM_RT_TRAP_NONE) {
        const uint32_t fresh = Z_stateZ_sum(&state);
        const char *why = nullptr;
        hak_wasm_wasm2c_snapshot *snapshot = hak_wasm_wasm2c_take(&state, sizeof state, &why);
        course->need(snapshot);
        course->need(trapped([] { Z_stateZ_change(&state); }) == WASM_RT_TRAP_NONE); // grows memory and table
        if (snapshot) {
            const bool back = hak_wasm_wasm2c_reset(&state, snapshot) == 0;
            course->need(back);
            if (back) course->require(Z_stateZ_sum(&state) == fresh, "not what it was");
        }
        hak_wasm_wasm2c_drop(snapshot);
    }
    Z_state_free(&state);
}

void serve(hak_wasm_host *host, Course *course)
{
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, nullptr);
    course->need(tenant);
    if (!tenant) return;
    {
        Scope scope(tenant);
        run_small(course);
        run_state(course);
    }
    require_empty(tenant, course);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

Course live(Refusal &refusal)
{
    Course course;
    HostOptions options;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = size_t(4) << 30;
    options.extent_bytes = size_t(8) << 30; // a memory each
    hak_wasm_host *host = hak_wasm_host_new(&options);
    course.need(host);
    if (!host) return course;
    course.require(hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) == 0, "the host serves");
    serve(host, &course);
    if (!refusal.lasts) {
        refusal.end();
        Course again;
        serve(host, &again);
        again.require(again.whole, "the host does not recover");
        hak_wasm_host_trim(host);
        require_empty(host, &again);
        course.add(again);
    }
    hak_wasm_host_delete(host);
    return course;
}

} // namespace

TEST_CASE("every request for pages of guests that are C is refused once", "[pages]")
{
    wasm_rt_init();
    Z_small_init_module();
    Z_state_init_module();
    CHECK(each_request(live) > 10);
}
