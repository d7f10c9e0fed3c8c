// Forks of a process whose threads share a context.
#include "shared.h"

#include <hakmem/profile.h>

#include <sys/wait.h>
#include <unistd.h>

using namespace test;

#ifndef __SANITIZE_THREAD__ // the sanitizer's own runtime does not survive it
namespace
{

// In the child of a fork: everything works, with the blocks of the parent in hand. 0 = good.
int child_work(hak_ctx *ctx, const std::vector<Block> &inherited, unsigned depth)
{
    try {
        Random random(depth);
        std::vector<Block> blocks;
        for (unsigned i = 0; i < 300; i++)
            blocks.push_back(make(ctx, 1 + random.below(5000), i));
        for (const Block &b : inherited) {
            check(b);
            hak_free(ctx, b.p);
        }
        for (const Block &b : blocks) {
            check(b);
            hak_free(ctx, b.p);
        }
        hak_ctx_trim(ctx);
    } catch (const std::exception &) {
        return 1;
    }
    return 0;
}

// `rounds` forks by this thread, each child forks again `depth` times. 0 = good.
int fork_tree(hak_ctx *ctx, unsigned rounds, unsigned depth)
{
    for (unsigned r = 0; r < rounds; r++) {
        std::vector<Block> blocks;
        for (unsigned i = 0; i < 100; i++)
            blocks.push_back(make(ctx, 16 + i * 20, i));
        hak_ctx_fork_prepare(ctx);
        pid_t pid = fork();
        if (pid == 0) {
            hak_ctx_fork_child(ctx);
            alarm(60); // a hang ends by a signal
            int bad = child_work(ctx, blocks, depth);
            if (!bad && depth > 1) bad = fork_tree(ctx, 1, depth - 1);
            _exit(bad);
        }
        hak_ctx_fork_parent(ctx);
        int status = -1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return 1;
        for (const Block &b : blocks) {
            check(b);
            hak_free(ctx, b.p);
        }
    }
    return 0;
}

void fork_beside_threads(hak_ctx *ctx, unsigned rounds, unsigned depth)
{
    std::atomic<bool> stop{false};
    std::atomic<void *> exchange{nullptr};
    Crew crew(3, [&](size_t t) {
        Random random(t);
        while (!stop) {
            void *p = hak_alloc(ctx, some_size(random));
            hak_free(ctx, exchange.exchange(p));
            if (random.below(50) == 0) hak_ctx_trim(ctx);
        }
    });
    CHECK(fork_tree(ctx, rounds, depth) == 0);
    stop = true;
    REQUIRE(crew.join() == "");
    hak_free(ctx, exchange);
    require_empty(ctx);
}

// How a hak_quota begins (base/quota.h). taken: what it uses, and what threads are about to.
struct Beginning {
    hak_quota *parent;
    std::atomic<size_t> used, hard, taken;
};

} // namespace

TEST_CASE("fork: beside running threads, 300 times, nested")
{
    Options options = shared_options();
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    fork_beside_threads(ctx, 100, 3);
    hak_ctx_destroy(ctx);
}

TEST_CASE("fork: beside threads that a profile samples")
{
    Options options = shared_options();
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    hak_profile_options sampled = HAK_PROFILE_OPTIONS_INIT;
    sampled.mean = 16 * KiB;
    REQUIRE(hak_profile_start(ctx, &sampled) == 0);
    fork_beside_threads(ctx, 30, 2);
    CHECK(hak_profile_stop(ctx) == 0);
    hak_ctx_destroy(ctx);
}

// Another thread has taken bytes of the groups at the moment of the fork, and is not in the child.
TEST_CASE("fork: the child has all that its groups do not use")
{
    const bool shared = GENERATE(false, true);
    hak_quota *top = hak_quota_new(nullptr, 96 * MiB), *group = hak_quota_new(top, 64 * MiB);
    REQUIRE(group != nullptr);
    Options options = shared ? shared_options() : ctx_options();
    options.quota = group;
    options.big_cache = HAK_NONE;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    std::atomic<size_t> &of_top = reinterpret_cast<Beginning *>(top)->taken;
    std::atomic<size_t> &of_group = reinterpret_cast<Beginning *>(group)->taken;
    REQUIRE(of_group == hak_quota_used(group)); // the twin is one still
    of_top = 90 * MiB;
    of_group += 48 * MiB;
    CHECK(hak_alloc(ctx, 32 * MiB) == nullptr);
    hak_ctx_fork_prepare(ctx);
    const pid_t pid = fork();
    if (pid == 0) {
        hak_ctx_fork_child(ctx);
        _exit(hak_alloc(ctx, 32 * MiB) && !hak_alloc(ctx, 32 * MiB) ? 0 : 1);
    }
    hak_ctx_fork_parent(ctx);
    int status = -1;
    CHECK((pid > 0 && waitpid(pid, &status, 0) == pid && status == 0));
    CHECK(hak_alloc(ctx, 32 * MiB) == nullptr);
    of_top = hak_quota_used(top);
    of_group = hak_quota_used(group);
    hak_ctx_destroy(ctx);
    hak_quota_delete(group);
    hak_quota_delete(top);
}
#endif
