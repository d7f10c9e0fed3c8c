// Contexts whose blocks are drawn before guard pages, and the faults of those who touch them where they must
// not.
#pragma once

#include "shared.h"

#include <hakmem/guard.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace test
{

// Every block is drawn, while there are slots.
inline void every(Options &options)
{
    options.debug |= HAK_DEBUG_GUARD;
    options.guard_every = 1;
}

struct Guarded {
    TestSpace space;
    Errors errors;
    Options options = ctx_options(&errors);
    hak_ctx *ctx;
    explicit Guarded(const std::function<void(Options &)> &change = {},
                     const std::function<void(SpaceOptions &)> &pages = {})
        : space(pages)
    {
        options.labels = LABELS;
        options.label_count = 3;
        every(options);
        if (change) change(options);
        ctx = hak_ctx_new(space.space, &options);
        REQUIRE(ctx != nullptr);
    }
    ~Guarded()
    {
        hak_ctx_destroy(ctx);
    }
    operator hak_ctx *() const
    {
        return ctx;
    }
};

inline bool drawn(const hak_ctx *ctx, const void *p)
{
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    return hak_guard_explain(ctx, p, &r) && r.p == p && !r.freed;
}

// Alignment of a block of n bytes that ends at the end of a page.
inline bool at_end(const void *p, size_t n, size_t align)
{
    uintptr_t end = (addr(p) + std::max<size_t>(n, 1) + align - 1) & ~(uintptr_t)(align - 1);
    return end % PAGE == 0;
}

inline const hak_ctx *handler_ctx;
inline int handler_pipe;

inline void on_fault(int, siginfo_t *info, void *)
{
    hak_guard_report r = HAK_GUARD_REPORT_INIT;
    bool known = hak_guard_explain(handler_ctx, info->si_addr, &r);
    char text[1024];
    size_t n = hak_guard_text(&r, text, sizeof text);
    if (!known || write(handler_pipe, &r, sizeof r) != (ssize_t)sizeof r ||
        write(handler_pipe, text, n) != (ssize_t)n)
        _exit(3);
    _exit(0);
}

struct Fault {
    hak_guard_report report = HAK_GUARD_REPORT_INIT;
    std::string text;
    bool none = false; // `touch` came to its end
};

// What a child tells of the fault that `touch` makes.
template <class Touch>
Fault fault_of(const hak_ctx *ctx, Touch touch)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        handler_ctx = ctx;
        handler_pipe = ends[1];
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, nullptr);
        sigaction(SIGBUS, &action, nullptr);
        touch();
        _exit(2);
    }
    close(ends[1]);
    Fault f;
    std::string all;
    char piece[4096];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;)
        all.append(piece, (size_t)n);
    close(ends[0]);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    f.none = WEXITSTATUS(status) == 2;
    REQUIRE((f.none || WEXITSTATUS(status) == 0));
    if (f.none) return f;
    REQUIRE(all.size() > sizeof f.report);
    std::memcpy(&f.report, all.data(), sizeof f.report);
    f.text = all.substr(sizeof f.report);
    return f;
}

inline volatile char sink;

inline void touch(const void *p, ptrdiff_t offset)
{
    sink = static_cast<const volatile char *>(p)[offset];
}

inline size_t frames_of(void *user, hak_ctx *, hak_site site, uintptr_t *frames, size_t room)
{
    REQUIRE(room == HAK_GUARD_DEPTH);
    size_t n = *static_cast<size_t *>(user);
    for (size_t i = 0; i < std::min(n, room); i++)
        frames[i] = 0x1000 + site + i;
    return n;
}

} // namespace test
