// Functions of guests as numbers, without a guest.
#include "wasm_test.h"

#include <hakmem/wasm_profile.h>

#include <string>

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
