// The malloc family and operator new as a program sees them. ctest runs this with the shim preloaded, and
// once without it and without the tests tagged [shim]: then it is glibc that has to meet the same
// expectations.
#include "catch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <regex.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace
{

const size_t SIZES[] = {0, 1, 8, 15, 16, 17, 24, 100, 1000, 5000, 40000, 300000, 1 << 20, 5 << 20};

// The compiler knows what malloc and free do, and removes pairs of them and comparisons; it does not know
// these.
void *(*volatile pmalloc)(size_t) = malloc;
void *(*volatile pcalloc)(size_t, size_t) = calloc;
void *(*volatile prealloc)(void *, size_t) = realloc;
void *(*volatile preallocarray)(void *, size_t, size_t) = reallocarray;
void (*volatile pfree)(void *) = free;
void *(*volatile paligned)(size_t, size_t) = aligned_alloc;
void *(*volatile pmemalign)(size_t, size_t) = memalign;
int (*volatile pposix)(void **, size_t, size_t) = posix_memalign;

bool aligned(const void *p, size_t to)
{
    return p != nullptr && reinterpret_cast<uintptr_t>(p) % to == 0;
}

void require_block(void *p, size_t n, size_t align = 16)
{
    REQUIRE(p != nullptr);
    REQUIRE(aligned(p, align));
    REQUIRE(malloc_usable_size(p) >= n);
    std::memset(p, 0x5A, malloc_usable_size(p));
}

size_t resident_kib()
{
    long pages = 0, ignored = 0;
    FILE *f = std::fopen("/proc/self/statm", "r");
    if (f) {
        if (std::fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
        std::fclose(f);
    }
    return (size_t)pages * 4;
}

} // namespace

TEST_CASE("the shim is in use", "[shim]")
{
    for (void *function : {dlsym(RTLD_DEFAULT, "malloc"), dlsym(RTLD_DEFAULT, "pvalloc"),
                           dlsym(RTLD_DEFAULT, "_Znwm"), dlsym(RTLD_DEFAULT, "_ZdlPvmSt11align_val_t")}) {
        Dl_info info;
        REQUIRE(dladdr(function, &info) != 0);
        CHECK(std::string(info.dli_fname).find("libhakmem-preload.so") != std::string::npos);
    }
    // Nothing of hakmem itself comes into sight.
    CHECK(dlsym(RTLD_DEFAULT, "hak_alloc") == nullptr);
}

TEST_CASE("frees that are told sizes and alignments", "[shim]")
{
    auto sized = reinterpret_cast<void (*)(void *, size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
    auto aligned_sized =
        reinterpret_cast<void (*)(void *, size_t, size_t)>(dlsym(RTLD_DEFAULT, "free_aligned_sized"));
    REQUIRE(sized != nullptr);
    REQUIRE(aligned_sized != nullptr);
    sized(nullptr, 0);
    aligned_sized(nullptr, 64, 0);
    // What is not freed adds up to more than is retained.
    size_t before = resident_kib();
    for (int i = 0; i < 300; i++)
        for (size_t n : {100u, 40000u, 3u << 20}) {
            void *p = pmalloc(n), *q = paligned(64, n);
            std::memset(p, 1, n);
            std::memset(q, 1, n);
            sized(p, n);
            aligned_sized(q, 64, n);
        }
    CHECK(resident_kib() < before + (100 << 10));
}

TEST_CASE("blocks of all sizes, of all functions")
{
    for (size_t n : SIZES) {
        CAPTURE(n);
        void *p = pmalloc(n), *other = pmalloc(n);
        CHECK(p != other);
        require_block(p, n);
        require_block(other, n);
        pfree(p);
        p = pcalloc(n, 1);
        for (size_t i = 0; i < n; i++)
            if (static_cast<char *>(p)[i] != 0) FAIL("calloc: byte " << i << " is not zero");
        require_block(p, n);
        pfree(p);
        pfree(other);
        p = preallocarray(nullptr, n, 3);
        require_block(p, 3 * n);
        pfree(p);
        for (size_t align = 16; align <= 1 << 20; align *= 4) {
            CAPTURE(align);
            p = paligned(align, n);
            require_block(p, n, align);
            pfree(p);
            p = pmemalign(align, n);
            require_block(p, n, align);
            p = prealloc(p, n + 100);
            require_block(p, n + 100);
            pfree(p);
            REQUIRE(pposix(&p, align, n) == 0);
            require_block(p, n, align);
            pfree(p);
        }
        p = valloc(n);
        require_block(p, n, 4096);
        pfree(p);
        p = pvalloc(n);
        require_block(p, (n + 4095) & ~(size_t)4095, 4096);
        pfree(p);
    }
}

TEST_CASE("zero and NULL")
{
    void *p = pmalloc(0), *q = pmalloc(0);
    CHECK(p != nullptr);
    CHECK(p != q);
    pfree(p);
    pfree(q);
    pfree(nullptr);
    p = prealloc(nullptr, 0);
    CHECK(p != nullptr);
    // It frees: a million times over without growing.
    size_t before = resident_kib();
    for (int i = 0; i < 100000; i++) {
        void *r = pmalloc(1000);
        std::memset(r, 1, 1000);
        if (prealloc(r, 0) != nullptr) FAIL("realloc(p, 0) gave a block");
    }
    CHECK(resident_kib() < before + 10000);
    pfree(p);
    CHECK(malloc_usable_size(nullptr) == 0);
}

TEST_CASE("realloc keeps contents, both ways")
{
    char *p = nullptr;
    size_t n = 0;
    for (size_t want :
         {10u, 100u, 1000u, 33000u, 500000u, 4000000u, 9000000u, 2000000u, 70000u, 3000u, 30u, 1u}) {
        p = static_cast<char *>(prealloc(p, want));
        require_block(p, want);
        for (size_t i = 0; i < want; i++)
            p[i] = (char)(i * 7);
        char *q = static_cast<char *>(prealloc(p, want + want / 3 + 1));
        REQUIRE(q != nullptr);
        for (n = 0; n < want; n++)
            if (q[n] != (char)(n * 7)) FAIL("byte " << n << " of " << want << " was lost");
        p = q;
    }
    pfree(p);
}

TEST_CASE("what cannot be had: NULL, ENOMEM, and the old block stays")
{
    const volatile size_t absurd = SIZE_MAX, large = (size_t)PTRDIFF_MAX + 1, wrapping = SIZE_MAX - 7;
    for (size_t n : {(size_t)absurd, (size_t)large, (size_t)wrapping, (size_t)PTRDIFF_MAX - 100}) {
        CAPTURE(n);
        errno = 0;
        CHECK(pmalloc(n) == nullptr);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(pcalloc(n, 1) == nullptr);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(pcalloc(2, n) == nullptr);
        CHECK(errno == ENOMEM);
        char *p = static_cast<char *>(pmalloc(30));
        std::strcpy(p, "still here");
        errno = 0;
        CHECK(prealloc(p, n) == nullptr);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(preallocarray(p, n, 2) == nullptr);
        CHECK(errno == ENOMEM);
        CHECK(std::string(p) == "still here");
        pfree(p);
        errno = 0;
        CHECK(paligned(64, n) == nullptr);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(pmemalign(4096, n) == nullptr);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(pvalloc(n) == nullptr);
        CHECK(errno == ENOMEM);
        void *q = &errno;
        errno = EDOM;
        CHECK(pposix(&q, 64, n) == ENOMEM);
        CHECK(errno == ENOMEM);
        CHECK(q == &errno);
    }
    errno = 0;
    CHECK(pcalloc((size_t)1 << 33, (size_t)1 << 33) == nullptr); // wraps to something small
    CHECK(errno == ENOMEM);
}

TEST_CASE("alignments that are none")
{
    void *p = &p;
    errno = EDOM;
    for (size_t align : {0u, 1u, 2u, 4u, 3u, 24u, 100u})
        CHECK(pposix(&p, align, 10) == EINVAL);
    CHECK(p == &p);
    CHECK(errno == EDOM); // the result is the error
    p = pmemalign(24, 100);
    CHECK(aligned(p, 32));
    pfree(p);
    p = pmemalign(0, 100);
    CHECK(aligned(p, 16));
    pfree(p);
    errno = 0;
    CHECK(pmemalign(SIZE_MAX - 5, 100) == nullptr);
    CHECK(errno == EINVAL);
}

TEST_CASE("aligned_alloc refuses what is not a power of two", "[shim]") // glibc does since 2.38
{
    errno = 0;
    CHECK(paligned(24, 100) == nullptr);
    CHECK(errno == EINVAL);
}

TEST_CASE("free keeps errno")
{
    for (size_t n : SIZES) {
        std::vector<void *> blocks;
        for (size_t total = 0; total < (50u << 20) && blocks.size() < 1000; total += n)
            blocks.push_back(pmalloc(n));
        for (void *p : blocks) {
            if (n) static_cast<char *>(p)[n - 1] = 1;
            errno = ENOTTY;
            pfree(p);
            if (errno != ENOTTY) FAIL("free changed errno, size " << n);
        }
    }
}

TEST_CASE("malloc_trim gives back")
{
    std::vector<void *> blocks;
    for (int i = 0; i < 40000; i++) {
        blocks.push_back(pmalloc(1000));
        std::memset(blocks.back(), 1, 1000);
    }
    void *last = pmalloc(1000);
    for (void *p : blocks)
        pfree(p);
    size_t before = resident_kib();
    CHECK(malloc_trim(0) == 1);
    CHECK(resident_kib() + 20000 < before + 5000);
    pfree(last);
}

TEST_CASE("what libc allocates is freed by free")
{
    char *line = nullptr;
    size_t room = 0;
    FILE *f = std::fopen("/proc/self/maps", "r");
    REQUIRE(f);
    while (getline(&line, &room, f) > 0)
        CHECK(malloc_usable_size(line) >= room);
    pfree(line);
    std::fclose(f);
    char *text = nullptr;
    REQUIRE(asprintf(&text, "%0*d", 5000, 7) == 5000);
    CHECK(malloc_usable_size(text) >= 5001);
    pfree(text);
    struct dirent **names = nullptr;
    int count = scandir("/usr/bin", &names, nullptr, alphasort);
    CHECK(count > 10);
    for (int i = 0; i < count; i++)
        pfree(names[i]);
    pfree(names);
    regex_t regex;
    REQUIRE(regcomp(&regex, "^(a|b)*[c-x]+(yz){2,40}$", REG_EXTENDED) == 0);
    CHECK(regexec(&regex, "abacdyzyz", 0, nullptr, 0) == 0);
    regfree(&regex);
    pfree(strdup("x"));
    pfree(realpath("/usr/bin/..", nullptr));
}

TEST_CASE("pointers of others are left alone", "[shim]")
{
    alignas(64) char stack[256] = "here";
    static char data[64] = "there";
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (void *p : {(void *)(stack + 64), (void *)data, page, (void *)16, (void *)~(uintptr_t)15}) {
        pfree(p);
        CHECK(malloc_usable_size(p) == 0);
        errno = 0;
        CHECK(prealloc(p, 100) == nullptr);
        CHECK(errno == ENOMEM);
    }
    CHECK(std::string(stack) == "here");
    CHECK(std::string(data) == "there");
    munmap(page, 4096);
}

TEST_CASE("operator new and delete, all forms")
{
    for (size_t n : SIZES) {
        CAPTURE(n);
        void *p = operator new(n);
        require_block(p, n);
        operator delete(p);
        p = operator new[](n);
        require_block(p, n);
        operator delete[](p, n);
        p = operator new(n, std::nothrow);
        require_block(p, n);
        operator delete(p, std::nothrow);
        p = operator new[](n, std::nothrow);
        require_block(p, n);
        operator delete[](p, std::nothrow);
        for (size_t align : {16u, 64u, 4096u, 65536u}) {
            std::align_val_t a{align};
            p = operator new(n, a);
            require_block(p, n, align);
            operator delete(p, n, a);
            p = operator new[](n, a);
            require_block(p, n, align);
            operator delete[](p, a);
            p = operator new(n, a, std::nothrow);
            require_block(p, n, align);
            operator delete(p, a, std::nothrow);
            p = operator new[](n, a, std::nothrow);
            require_block(p, n, align);
            operator delete[](p, n, a);
        }
        p = operator new(n);
        operator delete(p, n);
        p = operator new[](n);
        operator delete[](p);
    }
    operator delete(nullptr);
}

namespace
{

int handler_calls;

} // namespace

TEST_CASE("operator new without memory")
{
    const volatile size_t absurd = (size_t)PTRDIFF_MAX - 1000;
    CHECK_THROWS_AS(operator new(absurd), std::bad_alloc);
    CHECK_THROWS_AS(operator new[](absurd), std::bad_alloc);
    CHECK_THROWS_AS(operator new (absurd, std::align_val_t{128}), std::bad_alloc);
    CHECK_THROWS_AS(operator new[](absurd, std::align_val_t{128}), std::bad_alloc);
    CHECK(operator new(absurd, std::nothrow) == nullptr);
    CHECK(operator new[](absurd, std::nothrow) == nullptr);
    CHECK(operator new (absurd, std::align_val_t{128}, std::nothrow) == nullptr);
    CHECK(operator new[](absurd, std::align_val_t{128}, std::nothrow) == nullptr);
    // A handler is called until it gives up.
    auto handler = [] {
        if (++handler_calls % 3 == 0) std::set_new_handler(nullptr);
    };
    for (int form = 0; form < 4; form++) {
        handler_calls = 0;
        std::set_new_handler(handler);
        if (form == 0) CHECK_THROWS_AS(operator new(absurd), std::bad_alloc);
        if (form == 1) CHECK(operator new(absurd, std::nothrow) == nullptr);
        if (form == 2) CHECK_THROWS_AS(operator new (absurd, std::align_val_t{64}), std::bad_alloc);
        if (form == 3) CHECK(operator new[](absurd, std::align_val_t{64}, std::nothrow) == nullptr);
        CHECK(handler_calls == 3);
    }
    std::set_new_handler([] { throw 5; });
    CHECK_THROWS_AS(operator new(absurd), int);
    std::set_new_handler(nullptr);
}

TEST_CASE("blocks go from thread to thread")
{
    std::atomic<void *> slots[64] = {};
    std::atomic<bool> broken{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; t++)
        threads.emplace_back([&, t] {
            uint64_t r = t + 1;
            for (int i = 0; i < 30000; i++) {
                r = r * 6364136223846793005u + 1442695040888963407u;
                size_t n = 16 + (r >> 40) % ((r >> 33) % 50 ? 2000 : 200000);
                char *p = static_cast<char *>(pmalloc(n));
                std::memcpy(p, &n, sizeof n);
                p[n - 1] = (char)n;
                p = static_cast<char *>(slots[(r >> 20) % 64].exchange(p));
                if (!p) continue;
                std::memcpy(&n, p, sizeof n);
                if (p[n - 1] != (char)n) broken = true;
                pfree(p);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(!broken);
    for (auto &slot : slots)
        pfree(slot);
}

namespace
{

struct AtThreadEnd {
    std::string text = std::string(500, 'x');
    ~AtThreadEnd()
    {
        pfree(pmalloc(100));
        text += std::string(5000, 'y');
    }
};
thread_local AtThreadEnd at_thread_end;
pthread_key_t late_key;
std::atomic<int> late_calls;

// Comes back in each round of destructors that there is.
void late(void *p)
{
    pfree(p);
    late_calls++;
    pthread_setspecific(late_key, pmalloc(64));
}

} // namespace

TEST_CASE("what runs at the end of a thread may allocate and free")
{
    REQUIRE(pthread_key_create(&late_key, late) == 0);
    size_t before = 0;
    for (int i = 0; i < 2000; i++) {
        std::thread([] {
            at_thread_end.text += "z";
            pthread_setspecific(late_key, pmalloc(64));
            std::vector<void *> blocks;
            for (int k = 0; k < 100; k++)
                blocks.push_back(pmalloc(500));
            for (void *p : blocks)
                pfree(p);
        }).join();
        if (i == 200) before = resident_kib();
    }
    CHECK(late_calls >= 2000);
    CHECK(resident_kib() < before + 8000);
}

TEST_CASE("what threads left goes back while others come and go", "[shim]")
{
    enum { THREADS = 40, EACH = 20 };
    std::atomic<int> full{0};
    std::vector<std::thread> threads;
    const size_t before = resident_kib();
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&] {
            std::vector<void *> blocks;
            for (size_t n = 40; n < 2000; n += 60)
                for (int i = 0; i < EACH; i++)
                    blocks.push_back(std::memset(pmalloc(n), 1, n));
            for (full++; full < THREADS;)
                std::this_thread::yield();
            for (void *p : blocks)
                pfree(p);
        });
    for (std::thread &t : threads)
        t.join();
    const size_t left = resident_kib() - before;
    REQUIRE(left > 10000);
    for (int i = 0; i < 1000 && resident_kib() > before + left / 2; i++) {
        std::thread([] { pfree(pmalloc(100)); }).join();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(resident_kib() <= before + left / 2);
}

TEST_CASE("fork beside running threads")
{
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            while (!stop) {
                std::string s(3000, 'a');
                pfree(pmalloc(100000));
            }
        });
    int good = 0;
    for (int i = 0; i < 100; i++) {
        void *mine = pmalloc(100);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(30); // a hang ends by a signal
            pfree(mine);
            std::thread([] { std::string s(1000, 'b'); }).join();
            pid_t inner = fork();
            if (inner == 0) {
                pfree(pmalloc(300000));
                _exit(0);
            }
            int status = -1;
            waitpid(inner, &status, 0);
            _exit(status);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        good += status == 0;
        pfree(mine);
    }
    stop = true;
    for (std::thread &thread : threads)
        thread.join();
    CHECK(good == 100);
}
