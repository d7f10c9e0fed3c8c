// Programs that do not compile as they should, and hosts that have little or do more: nothing is left of a call.
#include "apart_test.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>

// The linker puts these before libc's and wasmtime's. Kernels before 5.3, and sandboxes, have no pidfd_open.
static std::atomic<bool> no_pidfd{false};
// As a program that has become another user's.
static std::atomic<bool> no_kill{false};
static std::atomic<pid_t> not_killed{0};
static std::atomic<int> waited{0};
static std::atomic<bool> no_memory{false};

extern "C" {
long __real_syscall(long, long, long, long, long, long, long);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_pidfd_open && no_pidfd) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_pidfd_send_signal && no_kill) {
        errno = EPERM;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

int __real_kill(pid_t, int);
int __wrap_kill(pid_t pid, int signal)
{
    if (!no_kill) return __real_kill(pid, signal);
    not_killed = std::abs(pid);
    errno = EPERM;
    return -1;
}

pid_t __real_wait4(pid_t, int *, int, rusage *);
pid_t __wrap_wait4(pid_t pid, int *status, int options, rusage *usage)
{
    waited++;
    return __real_wait4(pid, status, options, usage);
}

wasmtime_error_t *__real_wasmtime_module_deserialize(wasm_engine_t *, const uint8_t *, size_t,
                                                     wasmtime_module_t **);
wasmtime_error_t *__wrap_wasmtime_module_deserialize(wasm_engine_t *engine, const uint8_t *bytes, size_t size,
                                                     wasmtime_module_t **module)
{
    if (no_memory)
        return wasmtime_error_new("mmap failed\n\nCaused by:\n    Cannot allocate memory (os error 12)");
    return __real_wasmtime_module_deserialize(engine, bytes, size, module);
}
}

using namespace test;

namespace
{

bool is_alive(pid_t pid)
{
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t at = text.rfind(')');
    return at != std::string::npos && text.size() > at + 2 && text[at + 2] != 'Z' && text[at + 2] != 'X';
}

template <typename Done>
bool comes_true(const Done &done)
{
    const auto begun = Clock::now();
    while (!done() && since(begun) < 20000)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return done();
}

} // namespace

TEST_CASE("programs that are wrong are told, and nothing of them is left", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL), nothing = " and has compiled nothing";
    const struct {
        const char *way;
        hak_wasmtime_apart_outcome outcome;
        std::string text;
    } ways[] = {
        {"ends", HAK_WASMTIME_APART_START, "ended with status 0" + nothing},
        {"fails", HAK_WASMTIME_APART_START, "ended with status 3" + nothing + ": no such[31m thing"},
        {"fails_at_length", HAK_WASMTIME_APART_START,
         "ended with status 3" + nothing + ": " + std::string(199, 'l')},
        {"crashes", HAK_WASMTIME_APART_START, "was ended by signal 11" + nothing},
        {"without_config", HAK_WASMTIME_APART_START,
         "ended with status 2" + nothing + ": hakmem: there is no configuration"},
        {"no way", HAK_WASMTIME_APART_START, "ended with status 6" + nothing + ": compiler: no such way"},
        {"begins_and_ends", HAK_WASMTIME_APART_DIED, "ended with status 0" + nothing},
        {"begins_and_crashes", HAK_WASMTIME_APART_DIED, "was ended by signal 11" + nothing},
        {"begins_and_is_killed", HAK_WASMTIME_APART_DIED, "was ended by signal 9" + nothing},
        {"nonsense", HAK_WASMTIME_APART_START, "ended with status 0" + nothing},
        {"too_much", HAK_WASMTIME_APART_DIED, "ended with status 0" + nothing},
        {"no_kind", HAK_WASMTIME_APART_DIED, "ended with status 0" + nothing},
        {"answers_and_fails", HAK_WASMTIME_APART_DIED, "ended with status 4" + nothing},
    };
    for (const auto &way : ways) {
        INFO(way.way);
        CHECK(failure(runtime, module, Options(way.way), way.outcome) == program_text(way.text));
    }
    for (const char *way : {"nonsense_code", "no_code"})
        CHECK(failure(runtime, module, Options(way), HAK_WASMTIME_APART_ENGINE) != "");
    serve(runtime);
}

TEST_CASE("a program that waits is killed at the limit", "[apart]")
{
    Nothing left;
    Runtime runtime;
    // Ten MiB that nobody reads.
    std::string large_module = HEADER + std::string("\0", 1) + leb((10 << 20) + 2) + "\x01n";
    large_module.resize(large_module.size() + (10 << 20));
    for (bool without : {false, true}) {
        no_pidfd = without;
        auto begun = Clock::now();
        CHECK(failure(runtime, large_module, Options("waits", 300), HAK_WASMTIME_APART_START) ==
              program_text("began nothing in 300 ms and has compiled nothing"));
        CHECK(since(begun) >= 300);
        CHECK(since(begun) < 300 + SLACK);
        for (const char *way : {"begins_and_waits", "answers_and_waits"}) {
            begun = Clock::now();
            CHECK(failure(runtime, binary_of(SMALL), Options(way, 2000), HAK_WASMTIME_APART_TIME) ==
                  "hakmem: the module takes more than 2000 ms to compile");
            CHECK(since(begun) < 2000 + SLACK);
        }
        serve(runtime);
    }
    no_pidfd = false;
    CHECK(failure(runtime, large_module, Options(), HAK_WASMTIME_APART_DONE) == "");
}

TEST_CASE("options that are none, and programs that are not there", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL);
    const hak_wasmtime_apart_options empty = HAK_WASMTIME_APART_OPTIONS_INIT;
    CHECK(failure(runtime, module, empty, HAK_WASMTIME_APART_START) ==
          "hakmem: hak_wasmtime_apart_options.program names no program");
    Options options;
    options.size = 1;
    CHECK(failure(runtime, module, options, HAK_WASMTIME_APART_START) ==
          "hakmem: there are no options, or this library does not know them");
    options.size = sizeof(hak_wasmtime_apart_options);
    for (const auto &[name, why] :
         {std::pair<const char *, const char *>{"/nowhere", "No such file or directory"},
          {"/etc/passwd", "Permission denied"},
          {"/", "Permission denied"},
          {"", "No such file or directory"}}) {
        options.arguments[0] = name;
        CHECK(failure(runtime, module, options, HAK_WASMTIME_APART_START) ==
              std::string("hakmem: \"") + name + "\" cannot be started: " + why);
    }
    // A name of any length.
    const std::string name(5000, 'n');
    options.arguments[0] = name.c_str();
    CHECK(failure(runtime, module, options, HAK_WASMTIME_APART_START) ==
          "hakmem: \"" + std::string(255, 'n') + "\" cannot be started: File name too long");
    // Nobody asks how it went.
    options.arguments[0] = "/nowhere";
    const auto *bytes = reinterpret_cast<const uint8_t *>(module.data());
    hak_wasm_tenant *tenant = hak_wasm_host_tenant(runtime.host);
    CHECK(hak_wasmtime_module_apart(tenant, runtime.engine, runtime.linker, bytes, module.size(), &options,
                                    nullptr, nullptr) == nullptr);
    CHECK(hak_wasmtime_module_apart(tenant, runtime.engine, runtime.linker, bytes, module.size(), nullptr,
                                    nullptr, nullptr) == nullptr);
    // A caller that knows less, and one that knows more.
    struct {
        hak_wasmtime_apart_info info;
        size_t more;
    } newer;
    newer.info.size = sizeof newer;
    newer.more = 1;
    hak_wasmtime_module_apart(tenant, runtime.engine, runtime.linker, bytes, module.size(), &options,
                              &newer.info, nullptr);
    CHECK(newer.info.outcome == HAK_WASMTIME_APART_START);
    CHECK(newer.more == 0);
    hak_wasmtime_apart_info older = HAK_WASMTIME_APART_INFO_INIT;
    older.size = offsetof(hak_wasmtime_apart_info, milliseconds);
    older.milliseconds = 4711;
    hak_wasmtime_module_apart(tenant, runtime.engine, runtime.linker, bytes, module.size(), &options, &older,
                              nullptr);
    CHECK(older.outcome == HAK_WASMTIME_APART_START);
    CHECK(older.milliseconds == 4711);
}

TEST_CASE("a program has three descriptors, its own signals and low limits", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL),
                      nothing = program_text("ended with status 1 and has compiled nothing: ");
    const int open_file = open("/dev/null", O_RDONLY); // without O_CLOEXEC
    CHECK(failure(runtime, module, Options("tells_descriptors"), HAK_WASMTIME_APART_START) ==
          nothing + "are open");
    close(open_file);
    sigset_t all, before;
    sigfillset(&all);
    void (*handler)(int) = std::signal(SIGPROF, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    CHECK(failure(runtime, module, Options("tells_signals"), HAK_WASMTIME_APART_START) ==
          nothing + "0 ignored, 0 blocked");
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::signal(SIGPROF, handler);
    CHECK(failure(runtime, module, Options("tells_limits"), HAK_WASMTIME_APART_DIED) ==
          nothing + "core 0, cpu 62, memory 1, first 1000");
}

TEST_CASE("a program may be named behind one that starts it", "[apart]")
{
    Nothing left;
    Runtime runtime;
    Options options;
    const char *const nice[] = {"/usr/bin/env", "nice", "-n", "10", COMPILER, "compile", nullptr};
    options.program = nice;
    CHECK(failure(runtime, binary_of(GUEST), options, HAK_WASMTIME_APART_DONE) == "");
    options.milliseconds = 1000;
    CHECK(failure(runtime, slow(), options, HAK_WASMTIME_APART_TIME) ==
          "hakmem: the module takes more than 1000 ms to compile");
    const char *const missing[] = {"/usr/bin/env", "/nowhere", nullptr};
    options.program = missing;
    CHECK(failure(runtime, binary_of(SMALL), options, HAK_WASMTIME_APART_START).find("/nowhere") !=
          std::string::npos);
}

TEST_CASE("a program that writes without end takes no more memory than it may", "[apart]")
{
    Nothing left;
    Runtime runtime;
    Options options("floods");
    options.bytes = MIB;
    const std::string text = failure(runtime, binary_of(SMALL), options, HAK_WASMTIME_APART_START);
    const std::string start = program_text("ended with status 1 and has compiled nothing: ");
    REQUIRE(text.find(start) == 0);
    CHECK(std::stoul(text.substr(start.size())) <= MIB + 100);
}

TEST_CASE("what a program started ends with it", "[apart]")
{
    Nothing left;
    Runtime runtime;
    for (bool ignored : {false, true}) {
        for (bool without : {false, true}) {
            no_pidfd = without;
            void (*handler)(int) = std::signal(SIGCHLD, ignored ? SIG_IGN : SIG_DFL);
            const std::string text =
                failure(runtime, binary_of(SMALL), Options("leaves_a_process"), HAK_WASMTIME_APART_START);
            std::signal(SIGCHLD, handler);
            const std::string start =
                program_text(ignored ? "ended and has compiled nothing: "
                                     : "ended with status 1 and has compiled nothing: ");
            REQUIRE(text.find(start) == 0);
            const pid_t pid = std::stoi(text.substr(start.size()));
            CHECK(comes_true([&] { return !is_alive(pid); }));
        }
    }
    no_pidfd = false;
}

TEST_CASE("a program that nobody may kill is left at the limit", "[apart]")
{
    Nothing left;
    Runtime runtime;
    for (bool without : {false, true}) {
        no_pidfd = without;
        for (const char *way : {"waits", "begins_and_waits"}) {
            const bool begins = std::string(way) != "waits";
            const auto begun = Clock::now();
            no_kill = true;
            const std::string text = failure(runtime, binary_of(SMALL), Options(way, 2000),
                                             begins ? HAK_WASMTIME_APART_TIME : HAK_WASMTIME_APART_START);
            no_kill = false;
            CHECK(since(begun) < 2000 + SLACK);
            CHECK(text == (begins ? "hakmem: the module takes more than 2000 ms to compile"
                                  : program_text("began nothing in 2000 ms and has compiled nothing")));
            REQUIRE(not_killed > 0);
            CHECK(is_alive(not_killed));
            kill(not_killed, SIGKILL);
            REQUIRE(waitpid(not_killed, nullptr, 0) == not_killed);
        }
        // One that ends needs no kill.
        no_kill = true;
        serve(runtime);
        no_kill = false;
    }
    no_pidfd = false;
}

TEST_CASE("what a program started cannot change the answer", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL);
    CHECK(failure(runtime, module, Options("leaves_a_descriptor"), HAK_WASMTIME_APART_DONE) == "");
    CHECK(failure(runtime, module, Options("leaves_a_view"), HAK_WASMTIME_APART_DIED) ==
          program_text("has ended, but what it started can change its answer"));
}

TEST_CASE("a program in many groups knows how much address space it has", "[apart]")
{
    Nothing left;
    Runtime runtime;
    Apart apart(runtime, binary_of(SMALL), Options("in_many_groups"));
    CHECK(apart.error == "");
    CHECK(apart.info.bytes > 0);
    CHECK(apart.info.bytes < 512 * MIB);
}

TEST_CASE("a host without memory for a module is to blame itself", "[apart]")
{
    Nothing left;
    Runtime runtime;
    no_memory = true;
    CHECK(failure(runtime, binary_of(SMALL), Options(), HAK_WASMTIME_APART_START)
              .find("hakmem: no memory for a compiled module: mmap failed") == 0);
    no_memory = false;
    CHECK(info_of(hak_wasm_host_tenant(runtime.host)).linear_bytes == 0);
    TenantOptions options;
    options.limits.heap_bytes = MIB;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, &options);
    std::vector<void *> blocks;
    {
        Scope scope(tenant, HAK_WASM_OTHER);
        for (size_t n = 4096; n >= 16; n /= 2)
            while (void *block = hak_wasm_alloc(runtime.host, n))
                blocks.push_back(block);
    }
    {
        Apart apart(runtime, binary_of(SMALL), Options(), tenant);
        CHECK(apart.error == "hakmem: no memory for a module");
        CHECK(apart.info.outcome == HAK_WASMTIME_APART_START);
    }
    for (void *block : blocks)
        hak_wasm_free(runtime.host, block);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    serve(runtime);
}

TEST_CASE("a program ends with its host", "[apart]")
{
    char file[] = "/tmp/hakmem-bomb-XXXXXX";
    const int fd = mkstemp(file);
    REQUIRE(fd >= 0);
    const std::string bomb = slow();
    REQUIRE(write(fd, bomb.data(), bomb.size()) == ssize_t(bomb.size()));
    close(fd);
    std::string arguments[] = {COMPILER, "host", file};
    char *argv[] = {&arguments[0][0], &arguments[1][0], &arguments[2][0], nullptr};
    pid_t host;
    REQUIRE(posix_spawn(&host, COMPILER, nullptr, nullptr, argv, environ) == 0);
    pid_t program = 0;
    const auto find = [&] {
        DIR *dir = opendir("/proc");
        while (const dirent *entry = readdir(dir)) {
            if (std::atoi(entry->d_name) == 0) continue;
            std::ifstream in(std::string("/proc/") + entry->d_name + "/stat");
            const std::string text((std::istreambuf_iterator<char>(in)), {});
            const size_t at = text.rfind(')');
            char state;
            int parent;
            if (at != std::string::npos && std::sscanf(text.c_str() + at, ") %c %d", &state, &parent) == 2 &&
                parent == host)
                program = std::atoi(entry->d_name);
        }
        closedir(dir);
        // It has lowered its limits, and so has asked to end with its parent.
        std::ifstream in("/proc/" + std::to_string(program) + "/oom_score_adj");
        int first = 0;
        return program != 0 && (in >> first) && first == 1000;
    };
    CHECK(comes_true(find));
    kill(host, SIGKILL);
    REQUIRE(waitpid(host, nullptr, 0) == host);
    CHECK(comes_true([&] { return !is_alive(program); }));
    unlink(file);
}

TEST_CASE("without descriptors or room for files a module is refused, and nothing is lost", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL);
    rlimit before, limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    int next = open("/dev/null", O_RDONLY);
    close(next);
    int failed = 0;
    for (int more = 0; more < 6; more++) {
        limit = before;
        limit.rlim_cur = rlim_t(next + more);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        {
            Apart apart(runtime, module, Options());
            setrlimit(RLIMIT_NOFILE, &before);
            INFO(more << " " << apart.error);
            CHECK((apart.info.outcome == HAK_WASMTIME_APART_DONE ||
                   apart.info.outcome == HAK_WASMTIME_APART_START));
            failed += apart.module == nullptr;
        }
    }
    CHECK(failed >= 2);
    CHECK(failed < 6);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    for (rlim_t size : {0, 20, 1000, 5000}) {
        limit = before;
        limit.rlim_cur = size;
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        const std::string text = failure(runtime, module, Options(), HAK_WASMTIME_APART_START);
        setrlimit(RLIMIT_FSIZE, &before);
        CHECK(text == "hakmem: no file in memory for a module to compile: File too large");
    }
    serve(runtime);
}

TEST_CASE("the standard descriptors of the host may be closed", "[apart]")
{
    Nothing left;
    Runtime runtime;
    const std::string module = binary_of(SMALL);
    std::string texts[3];
    for (int closed = 0; closed < 3; closed++) {
        int kept[3];
        for (int fd = 0; fd <= closed; fd++) {
            kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
            close(fd);
        }
        {
            Apart apart(runtime, module, Options());
            texts[closed] = apart.error;
        }
        for (int fd = 0; fd <= closed; fd++) {
            dup2(kept[fd], fd);
            close(kept[fd]);
        }
    }
    for (const std::string &text : texts)
        CHECK(text == "");
}

TEST_CASE("hosts that ignore their children", "[apart]")
{
    Nothing left;
    Runtime runtime;
    for (bool without : {false, true}) {
        no_pidfd = without;
        waited = 0;
        void (*handler)(int) = std::signal(SIGCHLD, SIG_IGN);
        serve(runtime);
        CHECK(failure(runtime, binary_of(SMALL), Options("ends"), HAK_WASMTIME_APART_START) ==
              program_text("ended and has compiled nothing"));
        CHECK(failure(runtime, binary_of(SMALL), Options("begins_and_crashes"), HAK_WASMTIME_APART_DIED) ==
              program_text("ended and has compiled nothing"));
        CHECK(failure(runtime, slow(), Options("compile", 1000), HAK_WASMTIME_APART_TIME) ==
              "hakmem: the module takes more than 1000 ms to compile");
        Options options;
        options.bytes = size_t(4) << 30;
        options.cpu_milliseconds = 200;
        CHECK(failure(runtime, slow(), options, HAK_WASMTIME_APART_TIME) ==
              "hakmem: the module takes more than 200 ms of a processor to compile");
        CHECK(failure(runtime, binary_of(SMALL), Options("begins_and_has_no_memory"),
                      HAK_WASMTIME_APART_MEMORY) ==
              "hakmem: the module takes more than 536870912 bytes to compile");
        // The number of a child that is gone may be another's.
        CHECK(waited == 0);
        std::signal(SIGCHLD, handler);
        CHECK(failure(runtime, binary_of(SMALL), Options("begins_and_has_no_memory"),
                      HAK_WASMTIME_APART_MEMORY) ==
              "hakmem: the module takes more than 536870912 bytes to compile");
        CHECK(waited == 1);
    }
    no_pidfd = false;
}

TEST_CASE("hosts that take the status of each child", "[apart]")
{
    Nothing left;
    Runtime runtime;
    for (bool without : {false, true}) {
        no_pidfd = without;
        std::atomic<bool> over{false};
        std::atomic<int> taken{0};
        std::thread taker([&] {
            while (!over)
                if (waitpid(-1, nullptr, WNOHANG) > 0) taken++;
                else std::this_thread::yield();
        });
        const auto begun = Clock::now();
        do {
            serve(runtime);
        } while (taken == 0 && since(begun) < 20000);
        CHECK(taken > 0);
        CHECK(failure(runtime, slow(), Options("compile", 1000), HAK_WASMTIME_APART_TIME) ==
              "hakmem: the module takes more than 1000 ms to compile");
        over = true;
        taker.join();
    }
    no_pidfd = false;
}
