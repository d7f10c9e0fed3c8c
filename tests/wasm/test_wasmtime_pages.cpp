// Every n-th request for pages is refused while wasmtime runs guests: from the engine to its end. What
// wasmtime itself asks of the kernel, for machine code, does not come by here.
#include "pages_test.h"
#include "wasmtime_test.h"

#include <thread>

using namespace test;

namespace
{

wasm_byte_vec_t binary_of(const char *text)
{
    wasm_byte_vec_t binary;
    require_none(wasmtime_wat2wasm(text, std::strlen(text), &binary));
    return binary;
}

// On any thread: false with its text, or a trap.
bool call(hak_wasmtime_instance *guest, const char *name, int32_t argument, int32_t *result)
{
    wasmtime_context_t *context = hak_wasmtime_instance_context(guest);
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(context, hak_wasmtime_instance_get(guest), name, std::strlen(name),
                                      &item))
        return false;
    wasmtime_val_t in = {}, out = {};
    in.kind = WASMTIME_I32;
    in.of.i32 = argument;
    wasm_trap_t *trap = nullptr;
    wasmtime_error_t *error = hak_wasmtime_call(guest, &item.of.func, &in, 1, &out, 1, &trap);
    const bool ok = !error && !trap;
    text_of(error);
    if (trap) wasm_trap_delete(trap);
    *result = out.of.i32;
    return ok;
}

void run(hak_wasm_tenant *tenant, const hak_wasmtime_module *module, Course *course)
{
    wasmtime_error_t *error = nullptr;
    wasm_trap_t *trap = nullptr;
    hak_wasmtime_instance *guest = hak_wasmtime_instance_new(tenant, module, nullptr, nullptr, &error, &trap);
    course->need(guest);
    if (!guest) {
        course->require(text_of(error) != "", "an instance is refused without a word");
        return;
    }
    int32_t first = 0, next = 0;
    course->require(call(guest, "step", 1, &first), "a call that needs no page");
    const char *why = nullptr;
    hak_wasmtime_image *image = hak_wasmtime_image_take(guest, &why);
    course->need(image);
    if (!image) course->require(why, "an image is refused without a word");
    course->require(call(guest, "step", 1, &first) && call(guest, "load", 4096, &next),
                    "calls that need no page");
    if (image) {
        const bool back = hak_wasmtime_reset(guest, image) == 0;
        course->need(back);
        if (back) course->require(call(guest, "step", 1, &next) && next == first, "not what it was");
    }
    int32_t pages = 0;
    course->require(call(guest, "grow", 3, &pages) && (pages == 2 || pages == -1), "growth");
    course->need(pages == 2);
    course->require(call(guest, "load", 5 * int32_t(WASM_PAGE) - 4, &next) == (pages == 2),
                    "where the memory ends");
    hak_wasmtime_image_drop(image);
    hak_wasmtime_instance_close(guest);
}

struct Engine {
    hak_wasm_host *host;
    wasm_engine_t *engine;
    wasmtime_linker_t *linker;
};

void serve(const Engine &e, const wasm_byte_vec_t &binary, int threads, Course *course)
{
    hak_wasm_tenant *owner = hak_wasm_tenant_new(e.host, nullptr);
    course->need(owner);
    if (!owner) return;
    wasmtime_error_t *error = nullptr;
    hak_wasmtime_module *module = hak_wasmtime_module_new(
        owner, e.engine, e.linker, reinterpret_cast<const uint8_t *>(binary.data), binary.size, &error);
    course->need(module);
    if (!module) course->require(text_of(error) != "", "a module is refused without a word");
    std::vector<Course> courses(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    for (Course &c : courses) {
        if (!module) break;
        others.emplace_back([&c, &e, module] {
            hak_wasm_tenant *tenant = hak_wasm_tenant_new(e.host, nullptr);
            c.need(tenant);
            if (!tenant) return;
            for (int i = 0; i < 3; i++)
                run(tenant, module, &c);
            require_empty(tenant, &c);
            hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
        });
    }
    if (module) run(owner, module, course);
    for (std::thread &t : others)
        t.join();
    for (const Course &c : courses)
        course->add(c);
    hak_wasmtime_module_delete(module);
    require_empty(owner, course);
    hak_wasm_tenant_close(owner, HAK_WASM_RETIRE);
}

Course live(const wasm_byte_vec_t &binary, int threads, Refusal &refusal)
{
    Course course;
    HostOptions options = guarded();
    options.slot_bytes = 4 * MIB;
    options.guard_bytes = MIB;
    options.extent_bytes = 5 * MIB; // a memory each
    Engine e = {hak_wasm_host_new(&options), nullptr, nullptr};
    course.need(e.host);
    if (!e.host) return course;
    wasmtime_error_t *error = nullptr;
    e.engine = hak_wasmtime_engine_new(e.host, wasm_config_new(), &error);
    course.need(e.engine);
    if (!e.engine) course.require(text_of(error) != "", "an engine is refused without a word");
    if (e.engine) {
        e.linker = wasmtime_linker_new(e.engine);
        serve(e, binary, threads, &course);
        if (!refusal.lasts) {
            refusal.end();
            Course again;
            serve(e, binary, threads, &again);
            again.require(again.whole, "the host does not recover");
            hak_wasm_host_trim(e.host);
            require_empty(e.host, &again);
            course.add(again);
        }
        wasmtime_linker_delete(e.linker);
        wasm_engine_delete(e.engine);
    }
    hak_wasm_host_delete(e.host);
    return course;
}

} // namespace

TEST_CASE("every request for pages under wasmtime is refused once", "[pages]")
{
    wasm_byte_vec_t binary = binary_of(GUEST);
    CHECK(each_request([&](Refusal &r) { return live(binary, 0, r); }) > 10);
    wasm_byte_vec_delete(&binary);
}

TEST_CASE("every request for pages is refused once where a large table comes back, too", "[pages]")
{
    std::string text = GUEST;
    text.insert(text.rfind(')'), R"((table $t 20000 funcref) (elem declare func $deep)
        (func (export "x") (table.set $t (i32.const 0) (ref.func $deep))))");
    wasm_byte_vec_t binary = binary_of(text.c_str());
    CHECK(each_request([&](Refusal &r) { return live(binary, 0, r); }) > 10);
    wasm_byte_vec_delete(&binary);
}

TEST_CASE("requests for pages under wasmtime on three threads are refused", "[pages]")
{
    wasm_byte_vec_t binary = binary_of(GUEST);
    CHECK(each_request([&](Refusal &r) { return live(binary, 2, r); }) > 10);
    wasm_byte_vec_delete(&binary);
}
