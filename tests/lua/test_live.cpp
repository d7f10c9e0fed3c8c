// A state that is looked at while it runs: what a host has put in place of its allocator stays, and a forked
// child is not shown. hak_lua_live_start is for once in a process, so each test has one of its own.
#include "looker.h"
#include "lua_test.h"

extern "C" {
#include "cfi.h"
}

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>

using namespace test;

namespace
{

struct Shown {
    char folder[32] = "/tmp/hakmem-live-XXXXXX";
    std::string path;
    lua_State *L = hak_lua_newstate(nullptr);
    lua_Alloc usual = nullptr;
    void *ud = nullptr;

    bool start()
    {
        char error[256];
        if (L == nullptr || mkdtemp(folder) == nullptr) return false;
        path = std::string(folder) + "/socket";
        luaL_openlibs(L);
        const bool started = hak_lua_live_start(L, path.c_str(), error, sizeof error) == 0;
        usual = lua_getallocf(L, &ud);
        return started;
    }
    lua_Alloc now() const
    {
        void *of;
        return lua_getallocf(L, &of);
    }
    bool is_there() const
    {
        return access(path.c_str(), F_OK) == 0;
    }
    int connected() const
    {
        return connected_to(path);
    }
    // Somebody asks, and the state's next allocation is to answer.
    int asked() const
    {
        const int fd = connected();
        while (fd >= 0 && now() == usual)
            usleep(1000);
        return fd;
    }
    bool works() const
    {
        return run(L, "local t = {} for i = 1, 1000 do t[i] = { i } end return #('x'):rep(#t)") == "1000";
    }
    // On a machine that is busy a look may have ended before it was answered.
    bool is_shown() const
    {
        for (int i = 0; i < 10; i++) {
            const int fd = asked();
            if (works() && received(fd).find("\"hakmem-report/1\"") != std::string::npos) return true;
        }
        return false;
    }
};

// An allocator of the host's.
struct Wrapper {
    lua_Alloc inner = nullptr;
    void *ud = nullptr;
    size_t calls = 0;
    static void *call(void *self, void *ptr, size_t osize, size_t nsize)
    {
        auto *w = static_cast<Wrapper *>(self);
        w->calls++;
        return w->inner(w->ud, ptr, osize, nsize);
    }
    void put_around(lua_State *L)
    {
        inner = lua_getallocf(L, &ud);
        lua_setallocf(L, call, this);
    }
};

pthread_t own;
std::atomic<int> turns; // 1 = another thread that asks for the allocator says 2, and waits for 3

constexpr unsigned SECONDS = 60;

// What did not hold in a process of its own; "" = all did.
std::string in_a_process(const char *(*body)(Shown &))
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        Shown shown;
        const char *failed = shown.start() ? body(shown) : "start";
        const bool told = write(fds[1], failed, std::strlen(failed)) >= 0;
        unlink(shown.path.c_str());
        rmdir(shown.folder);
        _exit(told ? 0 : 1);
    }
    close(fds[1]);
    char text[200] = "";
    if (read(fds[0], text, sizeof text - 1) < 0) text[0] = '?';
    close(fds[0]);
    int status;
    waitpid(child, &status, 0);
    return status == 0 ? text : std::string(text) + " (the process ended otherwise)";
}

// Whether a child that allocates, stops the look and closes its state gets to its end.
bool child_ends(Shown &shown)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS / 3);
        const bool worked = shown.works();
        hak_lua_live_stop(shown.L);
        _exit(worked && shown.works() && hak_lua_close(shown.L) == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    return status == 0;
}

} // namespace

// Linked in place of lua_getallocf.
extern "C" lua_Alloc __real_lua_getallocf(lua_State *L, void **ud);
extern "C" lua_Alloc __wrap_lua_getallocf(lua_State *L, void **ud);
lua_Alloc __wrap_lua_getallocf(lua_State *L, void **ud)
{
    const lua_Alloc f = __real_lua_getallocf(L, ud);
    if (turns == 1 && pthread_equal(pthread_self(), own) == 0) {
        turns = 2;
        while (turns != 3)
            usleep(1000);
    }
    return f;
}

#define HOLDS(x)                                                                                             \
    if (!(x)) return #x

TEST_CASE("a host's allocator around a look that waits stays where it is")
{
    auto body = [](Shown &s) {
        Wrapper wrapper;
        const int fd = s.asked();
        HOLDS(fd >= 0);
        wrapper.put_around(s.L);
        HOLDS(s.works());
        HOLDS(s.now() == Wrapper::call);
        HOLDS(wrapper.calls > 100);
        HOLDS(received(fd).empty());
        lua_setallocf(s.L, wrapper.inner, wrapper.ud);
        HOLDS(s.works());
        HOLDS(s.now() == s.usual);
        HOLDS(s.is_shown());
        hak_lua_live_stop(s.L);
        HOLDS(hak_lua_close(s.L) == 0);
        return "";
    };
    CHECK(in_a_process(body) == "");
}

#ifdef HKC_CFI_WALK // elsewhere it may go
TEST_CASE("a host's allocator that comes while somebody begins to look stays")
{
    auto body = [](Shown &s) {
        Wrapper wrapper;
        own = pthread_self();
        turns = 1;
        const int fd = s.connected();
        while (turns != 2)
            usleep(1000);
        wrapper.put_around(s.L);
        turns = 3;
        HOLDS(received(fd).empty());
        HOLDS(s.now() == Wrapper::call);
        HOLDS(s.works());
        HOLDS(wrapper.calls > 100);
        lua_setallocf(s.L, wrapper.inner, wrapper.ud);
        HOLDS(s.is_shown());
        return "";
    };
    CHECK(in_a_process(body) == "");
}
#endif

TEST_CASE("a look that nothing answers leaves the allocator as it was")
{
    auto body = [](Shown &s) {
        HOLDS(received(s.asked()).empty());
        HOLDS(s.now() == s.usual);
        HOLDS(s.is_shown());
        HOLDS(s.now() == s.usual);
        return "";
    };
    CHECK(in_a_process(body) == "");
}

#if LUA_VERSION_NUM >= 505
TEST_CASE("a string that was made while a look waited is freed, whatever is installed by then")
{
    auto body = [](Shown &s) {
        const auto make = [&s] {
            constexpr size_t SIZE = 5000;
            auto *text = static_cast<char *>(s.usual(s.ud, nullptr, 0, SIZE));
            std::memset(text, 0, SIZE);
            const int fd = s.asked(); // as in luaL_pushresult, which asks for the allocator first
            lua_pushexternalstring(s.L, text, SIZE - 1, s.now(), s.ud);
            return s.now() == s.usual && received(fd).find("hakmem-report") != std::string::npos;
        };
        const size_t before = stats_of(s.L).live_bytes;
        HOLDS(make());
        lua_settop(s.L, 0);
        lua_gc(s.L, LUA_GCCOLLECT, 0);
        HOLDS(s.now() == s.usual);
        HOLDS(stats_of(s.L).live_bytes < before + 5000);
        HOLDS(make());
        lua_settop(s.L, 0);
        const int fd = s.asked();
        lua_gc(s.L, LUA_GCCOLLECT, 0);
        HOLDS(received(fd).find("hakmem-report") != std::string::npos);
        HOLDS(make());
        hak_lua_live_stop(s.L);
        HOLDS(s.now() == s.usual);
        lua_close(s.L);
        return "";
    };
    CHECK(in_a_process(body) == "");
}
#endif

TEST_CASE("the socket of a state can go while a host's allocator is around")
{
    auto body = [](Shown &s) {
        Wrapper wrapper;
        lua_State *other = hak_lua_newstate(nullptr), *thread = lua_newthread(s.L);
        wrapper.put_around(s.L);
        hak_lua_live_stop(other);
        HOLDS(s.is_there());
        hak_lua_live_stop(thread);
        HOLDS(!s.is_there());
        HOLDS(s.now() == Wrapper::call);
        hak_lua_live_stop(s.L);
        lua_close(s.L);
        hak_lua_live_stop(other); // the other one is gone, and not looked at
        lua_close(other);
        return "";
    };
    CHECK(in_a_process(body) == "");
}

TEST_CASE("a forked child leaves the socket to its parent")
{
    auto body = [](Shown &s) {
        HOLDS(child_ends(s));
        HOLDS(s.is_there());
        HOLDS(s.is_shown());
        hak_lua_live_stop(s.L);
        HOLDS(!s.is_there());
        return "";
    };
    CHECK(in_a_process(body) == "");
}

TEST_CASE("a forked child does not wait for a look at its parent")
{
    auto body = [](Shown &s) {
        const int fd = s.asked();
        HOLDS(fd >= 0);
        HOLDS(child_ends(s));
        HOLDS(s.is_there());
        HOLDS(s.works());
        received(fd);
        HOLDS(s.is_shown());
        return "";
    };
    CHECK(in_a_process(body) == "");
}
