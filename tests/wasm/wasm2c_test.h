// What the tests of guests of wasm2c share.
#pragma once

#include "wasm_test.h"

#include <hakmem/wasm_wasm2c.h>

extern "C" {
#include <wasm-rt-impl.h>
}

namespace test
{

// What a function trapped with; WASM_RT_TRAP_NONE = it did not.
template <typename Fn>
int trapped(Fn fn)
{
    int code = wasm_rt_impl_try();
    if (code == 0) fn();
    return code;
}

} // namespace test
