// Profiles of tenants without a guest: functions as numbers, and who is told of samples.
#include "wasm_test.h"

#include <hakmem/wasm_profile.h>

#include <string>

using namespace test;

// As bindings/wasm-host/src/profile.h, which is C alone, has them.
extern "C" {
struct hkw_frames;
hkw_frames *hkw_frames_new(void);
void hkw_frames_delete(hkw_frames *frames);
uintptr_t hkw_frames_number(hkw_frames *frames, const hak_wasm_frame *frame);
bool hkw_frames_at(hkw_frames *frames, uintptr_t number, hak_wasm_frame *out);
}

TEST_CASE("a tenant's profile has 4095 functions: further ones are one, and known ones keep their numbers",
          "[frames]")
{
    hkw_frames *frames = hkw_frames_new();
    REQUIRE(frames != nullptr);
    hak_wasm_frame f = {}, out = {};
    f.function = "f";
    f.module = "m";
    std::vector<uintptr_t> numbers;
    for (uint32_t i = 0; i < 5000; i++) {
        f.index = i;
        numbers.push_back(hkw_frames_number(frames, &f));
    }
    for (uint32_t i = 0; i < 5000; i++) {
        CAPTURE(i);
        REQUIRE(hkw_frames_at(frames, numbers[i], &out));
        REQUIRE(std::string(out.function) == (i < 4095 ? "f" : ""));
        REQUIRE((i >= 4095 || out.index == i));
    }
    f.index = 17;
    CHECK(hkw_frames_number(frames, &f) == numbers[17]);
    hkw_frames_delete(frames);
}

TEST_CASE("a function's name is cut at 255 bytes, and is the same name again", "[frames]")
{
    hkw_frames *frames = hkw_frames_new();
    REQUIRE(frames != nullptr);
    const std::string longer(300, 'x'), longest(400, 'x'), other(254, 'x');
    hak_wasm_frame f = {}, out = {};
    f.function = longer.c_str();
    const uintptr_t number = hkw_frames_number(frames, &f);
    f.function = longest.c_str();
    CHECK(hkw_frames_number(frames, &f) == number);
    REQUIRE(hkw_frames_at(frames, number, &out));
    CHECK(std::string(out.function) == std::string(255, 'x'));
    f.function = other.c_str();
    CHECK(hkw_frames_number(frames, &f) != number);
    hkw_frames_delete(frames);
}

// The debugger of test_probes.py stops in here.
TEST_CASE("samples of a profile are told by probes", "[profile]")
{
    Host host;
    hak_wasm_tenant *a = hak_wasm_tenant_new(host, nullptr);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    REQUIRE(hak_wasm_profile_start(a, &options) == 0);
    const hak_wasm_scope before = hak_wasm_enter(a, HAK_WASM_LOAD);
    void *p = hak_wasm_alloc(host, 3000);
    REQUIRE(p != nullptr);
    hak_wasm_free(host, p);
    hak_wasm_leave(before);
    hak_wasm_tenant_close(a, HAK_WASM_RETIRE);
}

TEST_CASE("a host's own functions hear of samples in place of probes", "[profile]")
{
    static int made, gone;
    made = gone = 0;
    Host host;
    hak_wasm_tenant *a = hak_wasm_tenant_new(host, nullptr);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    options.sample_made = [](void *, const void *, size_t, double) { made++; };
    options.sample_gone = [](void *, const void *) { gone++; };
    REQUIRE(hak_wasm_profile_start(a, &options) == 0);
    const hak_wasm_scope before = hak_wasm_enter(a, HAK_WASM_LOAD);
    void *p = hak_wasm_alloc(host, 3000);
    CHECK(made == 1);
    hak_wasm_free(host, p);
    CHECK(gone == 1);
    hak_wasm_leave(before);
    hak_wasm_tenant_close(a, HAK_WASM_RETIRE);
}
