// Writes into a pipe that nobody reads, or a file that may not grow, and the signals that come with them.
#include "catch.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

extern "C" {
#include "common/pipe.h"
}

namespace
{

struct Broken {
    int fd;

    Broken()
    {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        close(ends[0]);
        fd = ends[1];
    }
    ~Broken()
    {
        close(fd);
    }

    // As the bindings write. The signal would end the test.
    void write_quietly() const
    {
        hkc_pipe quiet;
        hkc_pipe_begin(&quiet);
        const int error = write(fd, "x", 1) < 0 ? errno : 0;
        hkc_pipe_end(&quiet, error);
        CHECK(errno == EPIPE);
    }
};

bool is_pending()
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGPIPE) == 1;
}

bool is_blocked()
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    return sigismember(&set, SIGPIPE) == 1;
}

volatile sig_atomic_t caught;

void on_pipe(int)
{
    caught = caught + 1;
}

// How the program has it.
struct Program {
    sigset_t pipe_signal, before;
    void (*handler)(int);

    Program() : handler(signal(SIGPIPE, on_pipe))
    {
        sigemptyset(&pipe_signal);
        sigaddset(&pipe_signal, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, nullptr, &before);
        caught = 0;
    }
    ~Program()
    {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        signal(SIGPIPE, handler);
    }
    void block()
    {
        pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    }
    void unblock()
    {
        pthread_sigmask(SIG_UNBLOCK, &pipe_signal, nullptr);
    }
};

} // namespace

TEST_CASE("a pipe that nobody reads raises nothing")
{
    Program program;
    Broken broken;
    program.unblock();
    for (int i = 0; i < 3; i++)
        broken.write_quietly();
    CHECK_FALSE(is_blocked());
    CHECK(caught == 0);
    raise(SIGPIPE); // the program's own
    CHECK(caught == 1);
}

TEST_CASE("a program that blocks the signal finds none later")
{
    Program program;
    Broken broken;
    program.block();
    broken.write_quietly();
    CHECK(is_blocked());
    CHECK_FALSE(is_pending());
}

TEST_CASE("a signal that was pending stays pending")
{
    Program program;
    Broken broken;
    program.block();
    raise(SIGPIPE);
    broken.write_quietly();
    CHECK(is_pending());
    program.unblock();
    CHECK(caught == 1);
}

TEST_CASE("a signal that comes from elsewhere meanwhile is not taken")
{
    Program program;
    program.unblock();
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    raise(SIGPIPE);
    CHECK(caught == 0);
    hkc_pipe_end(&quiet, 0);
    CHECK(caught == 1);
}

TEST_CASE("who ignores the signal goes on ignoring it")
{
    Program program;
    Broken broken;
    signal(SIGPIPE, SIG_IGN);
    broken.write_quietly();
    CHECK_FALSE(is_pending());
    CHECK(signal(SIGPIPE, SIG_IGN) == SIG_IGN);
}

namespace
{

// A file that may not grow while this is there. The signal's default ends the test.
struct Full {
    FILE *file = tmpfile();
    rlimit before{};
    void (*handler)(int) = signal(SIGXFSZ, SIG_DFL);

    Full()
    {
        REQUIRE(file);
        REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
        const rlimit none = {0, before.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
    }
    ~Full()
    {
        setrlimit(RLIMIT_FSIZE, &before);
        signal(SIGXFSZ, handler);
        fclose(file);
    }
};

bool file_signal_waits()
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGXFSZ) == 1;
}

} // namespace

TEST_CASE("a file that may not grow raises nothing")
{
    Full full;
    for (int i = 0; i < 3; i++) {
        const ssize_t n = hkc_pipe_write(fileno(full.file), "x", 1);
        const int error = errno;
        CHECK((n == -1 && error == EFBIG));
        CHECK_FALSE(file_signal_waits());
    }
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    CHECK(sigismember(&set, SIGXFSZ) == 0);
}

TEST_CASE("the file's signal that was pending stays pending, within another pair, too")
{
    Full full;
    caught = 0;
    signal(SIGXFSZ, on_pipe);
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    raise(SIGXFSZ);
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    CHECK(hkc_pipe_write(fileno(full.file), "x", 1) == -1);
    hkc_pipe_end(&quiet, EFBIG);
    CHECK(file_signal_waits());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    CHECK(caught == 1);
}
