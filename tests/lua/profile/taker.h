// A lua_Alloc that takes the frames of allocations itself, with nothing of the core's between.
#pragma once

#include "lua_test.h"

extern "C" {
#include "profile/frames.h"
#include "profile/quick.h"
#include "profile/thread.h"
#include "profile/trace.h"
}

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace test
{

struct Taken {
    size_t size;
    std::string stack; // "C rep < a.lua:3 f < a.lua:7 main", without directories
};

class Taker
{
  public:
    explicit Taker(size_t least_size = 10000, unsigned most_frames = 32)
        : least(least_size), most(most_frames)
    {
        REQUIRE(hkl_thread_learn());
        frames = hkl_frames_new(1 << 20);
        state.ctx = hak_ctx_new(nullptr, nullptr);
        L = new_state(alloc, this);
        REQUIRE(L != nullptr);
        state.main = L;
        luaL_openlibs(L);
    }
    Taker(const Taker &) = delete;
    Taker &operator=(const Taker &) = delete;
    ~Taker()
    {
        if (L != nullptr) lua_close(L);
        hak_ctx_destroy(state.ctx);
        hkl_frames_delete(frames);
    }

    // From now on each allocation is looked up by its key, too. The slots' own numbers stand for their
    // stacks.
    void compare()
    {
        REQUIRE(hkl_quick_known());
        quick = std::make_unique<hkl_quick>();
        found = 0;
        hkl_quick_begin(quick.get(), &state, &walk, frames);
    }

    // Runs a chunk that is called a.lua.
    std::string run(const std::string &code, const char *name = "@dir/a.lua")
    {
        const int top = lua_gettop(L);
        if (luaL_loadbuffer(L, code.data(), code.size(), name) == LUA_OK) lua_pcall(L, 0, 1, 0);
        const char *text = lua_tostring(L, -1);
        std::string result = text != nullptr ? text : "";
        lua_settop(L, top);
        return result;
    }

    // A program of the benchmark, with little to do.
    std::string run_program(const std::string &path)
    {
        lua_createtable(L, 1, 1);
        lua_pushstring(L, path.c_str());
        lua_rawseti(L, -2, 0);
        lua_pushstring(L, "0.02");
        lua_rawseti(L, -2, 1);
        lua_setglobal(L, "arg");
        return run("print = function() end dofile(arg[0]) return 'ok'");
    }

    // The stack of the first allocation for a string or buffer of that size; "" = there was none.
    std::string stack_of(size_t size) const
    {
        for (const Taken &t : taken)
            if (t.size >= size && t.size < size + 64) return t.stack;
        return "";
    }

    lua_State *L = nullptr;
    hkl_state state = {};
    hkl_frames *frames = nullptr;
    std::vector<Taken> taken;
    size_t growths = 0, found = 0, on_traces = 0;
    size_t refuse = 0; // allocations of this size fail
    std::unique_ptr<hkl_quick> quick;
    size_t same = 0, again = 0, walked = 0, different = 0; // `again`: of the same, those with a known number
    std::map<std::string, size_t> walks;
    std::string difference; // the first one

    std::string text(uintptr_t number) const
    {
        static const char *const kinds[] = {"?", "", "C ", "trace ", "coroutine", "cut"};
        const hak_lua_frame *f = hkl_frames_at(frames, number);
        if (f == nullptr) return "none";
        std::string result = kinds[f->kind], source = f->source;
        if (source[0] == '@')
            source.erase(0, source.find('/') == std::string::npos ? 1 : source.rfind('/') + 1);
        if (!source.empty()) result += source + ":" + std::to_string(f->line);
        if (f->kind == HAK_LUA_FRAME_TRACE) result.erase(result.rfind(':'));
        if (f->function[0] != '\0') result += (source.empty() ? "" : " ") + std::string(f->function);
        else if (!source.empty() && f->defined == 0) result += " main";
        return result;
    }

  private:
    size_t least;
    unsigned most;
    hkl_walk walk = {};
    std::vector<std::vector<uintptr_t>> numbered = {{}};

    std::string text_of(const std::vector<uintptr_t> &stack) const
    {
        std::string result;
        for (const uintptr_t number : stack)
            result += (result.empty() ? "" : " < ") + text(number);
        return result;
    }

    // What the slot says against the walk to the first function in Lua.
    void look_up(lua_State *thread, const hkc_cfi_registers &at)
    {
        uintptr_t numbers[80];
        const int slot = hkl_quick_find(quick.get(), &at);
        const hkl_asker asker = {thread, &at, &walk};
        const size_t n = hkl_frames_walk(frames, &asker, 1, numbers, 80);
        const std::vector<uintptr_t> truth(numbers, numbers + n);
        if (slot < 0) {
            walked++;
            walks[text_of(truth)]++;
            return;
        }
        const uintptr_t *known;
        const size_t count = hkl_quick_frames(quick.get(), slot, &known);
        std::vector<uintptr_t> stack(known, known + count);
        uint32_t &user = quick->slots[slot].user;
        if (user != 0) {
            again++;
            if (stack == truth) stack = numbered[user];
        } else {
            user = static_cast<uint32_t>(numbered.size());
            numbered.push_back(stack);
        }
        if (stack == truth) same++;
        else if (different++ == 0) difference = text_of(stack) + " and not " + text_of(truth);
    }

    void take(size_t size)
    {
        hkc_cfi_registers at;
        hkc_cfi_here(&at);
        uintptr_t numbers[80];
        growths++;
        lua_State *thread = hkl_thread_unwind(&walk, &at) ? hkl_thread_at(&walk, &state, &at) : nullptr;
        if (thread == nullptr) return;
        found++;
        if (quick) look_up(thread, at);
        const hkl_asker asker = {thread, &at, &walk};
        size_t n = hkl_frames_walk(frames, &asker, most, numbers, 80);
        uintptr_t base;
        if (n > 0 && hkl_trace_running(hkl_trace_global(thread), &base) > 0) on_traces++;
        if (size < least) return;
        std::string stack;
        for (size_t i = 0; i < n; i++)
            stack += (i > 0 ? " < " : "") + text(numbers[i]);
        taken.push_back({size, stack});
    }

    static void *alloc(void *ud, void *ptr, size_t osize, size_t nsize)
    {
        auto *me = static_cast<Taker *>(ud);
        if (nsize == 0) {
            if (me->quick) hkl_quick_freed(me->quick.get(), ptr);
            std::free(ptr);
            return nullptr;
        }
        if (me->state.main != nullptr && (ptr == nullptr || nsize > osize)) me->take(nsize);
        if (nsize == me->refuse) return nullptr;
        return std::realloc(ptr, nsize);
    }
};

} // namespace test
