// Calls what clang makes of allocations with -fsanitize=alloc-token, by hand, for test_tokens.py: a compiler
// that has the option is rare. Compiled with debug information, and linked with the shim.
//
//   tokens functions          each function with a token of its own, 1000 and up, so many blocks of 100 bytes
//   tokens fast               the same of the other interface, with tokens 0 to 15
//   tokens types A B C        10 blocks for each of three types, whose tokens are given
//   tokens live A B C         the same, and waits
//   tokens many N             N tokens, a block of 64 bytes each, twice
//   tokens threads N          N tokens in each of four threads, 100 blocks of 48 bytes each
//   tokens realloc            labels of blocks that change their size
//   tokens errors             what cannot be had
//   tokens misuse             a second free of a block with token 0xABC
//   tokens limit I            one large block of the function I, beside memory that was mapped and not touched
//   tokens costs N            N pairs of an allocation and a free in measured(), for each kind in a process of its
//                             own that has done as many before: says kind, process and the number of pairs
//   tokens forks N            N rounds of blocks with tokens, in threads, and in children that are forked
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace shop
{

struct Item {
    int numbers[10];
};

template <typename T>
struct Basket {
    T first;
    Basket *next;
};

} // namespace shop

union plain {
    long number;
    char bytes[24];
};

// Debug information has only types that are used.
shop::Item *volatile some_item;
shop::Basket<int> *volatile some_basket;
union plain *volatile some_plain;

extern "C" {
void *__alloc_token_malloc(size_t n, size_t token);
void *__alloc_token_calloc(size_t count, size_t n, size_t token);
void *__alloc_token_realloc(void *p, size_t n, size_t token);
void *__alloc_token_reallocarray(void *p, size_t count, size_t n, size_t token);
int __alloc_token_posix_memalign(void **out, size_t align, size_t n, size_t token);
void *__alloc_token_aligned_alloc(size_t align, size_t n, size_t token);
void *__alloc_token_memalign(size_t align, size_t n, size_t token);
void *__alloc_token_valloc(size_t n, size_t token);
void *__alloc_token_pvalloc(size_t n, size_t token);
void *__alloc_token__Znwm(size_t n, size_t token);
void *__alloc_token__Znam(size_t n, size_t token);
void *__alloc_token__ZnwmRKSt9nothrow_t(size_t n, const std::nothrow_t &, size_t token);
void *__alloc_token__ZnamRKSt9nothrow_t(size_t n, const std::nothrow_t &, size_t token);
void *__alloc_token__ZnwmSt11align_val_t(size_t n, size_t align, size_t token);
void *__alloc_token__ZnamSt11align_val_t(size_t n, size_t align, size_t token);
void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const std::nothrow_t &,
                                                       size_t token);
void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const std::nothrow_t &,
                                                       size_t token);
void *__alloc_token_0_malloc(size_t n);
void *__alloc_token_1_calloc(size_t count, size_t n);
void *__alloc_token_2_realloc(void *p, size_t n);
void *__alloc_token_3_malloc(size_t n);
void *__alloc_token_3_reallocarray(void *p, size_t count, size_t n);
int __alloc_token_4_posix_memalign(void **out, size_t align, size_t n);
void *__alloc_token_5_aligned_alloc(size_t align, size_t n);
void *__alloc_token_6_memalign(size_t align, size_t n);
void *__alloc_token_7_valloc(size_t n);
void *__alloc_token_8_pvalloc(size_t n);
void *__alloc_token_9__Znwm(size_t n);
void *__alloc_token_10__Znam(size_t n);
void *__alloc_token_11__ZnwmRKSt9nothrow_t(size_t n, const std::nothrow_t &);
void *__alloc_token_12__ZnamRKSt9nothrow_t(size_t n, const std::nothrow_t &);
void *__alloc_token_13__ZnwmSt11align_val_t(size_t n, size_t align);
void *__alloc_token_14__ZnamSt11align_val_t(size_t n, size_t align);
void *__alloc_token_15__ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const std::nothrow_t &);
void *__alloc_token_15__ZnamSt11align_val_tRKSt9nothrow_t(size_t n, size_t align, const std::nothrow_t &);
}

static void require(bool holds, const char *what)
{
    if (holds) return;
    std::fprintf(stderr, "tokens: %s\n", what);
    std::exit(1);
}

// The first of the bytes says that the block is the program's.
static void take(void *p, size_t align, const char *what)
{
    require(p && reinterpret_cast<uintptr_t>(p) % align == 0, what);
    std::memset(p, 0x5A, 100);
}

constexpr size_t FUNCTIONS = 17, PAGE = 4096;

// A block of n bytes by each of the functions, n a multiple of ten.
static void *by_function(size_t i, size_t align, size_t n, size_t token)
{
    void *p = nullptr;
    switch (i) {
    case 0:
        return __alloc_token_malloc(n, token);
    case 1:
        return __alloc_token_calloc(10, n / 10, token);
    case 2:
        return __alloc_token_realloc(__alloc_token_malloc(20, token), n, token);
    case 3:
        return __alloc_token_reallocarray(nullptr, 10, n / 10, token);
    case 4:
        return __alloc_token_posix_memalign(&p, align, n, token) == 0 ? p : nullptr;
    case 5:
        return __alloc_token_aligned_alloc(align, n, token);
    case 6:
        return __alloc_token_memalign(align, n, token);
    case 7:
        return __alloc_token_valloc(n, token);
    case 8:
        return __alloc_token_pvalloc(n, token);
    case 9:
        return __alloc_token__Znwm(n, token);
    case 10:
        return __alloc_token__Znam(n, token);
    case 11:
        return __alloc_token__ZnwmRKSt9nothrow_t(n, std::nothrow, token);
    case 12:
        return __alloc_token__ZnamRKSt9nothrow_t(n, std::nothrow, token);
    case 13:
        return __alloc_token__ZnwmSt11align_val_t(n, align, token);
    case 14:
        return __alloc_token__ZnamSt11align_val_t(n, align, token);
    case 15:
        return __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(n, align, std::nothrow, token);
    default:
        return __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(n, align, std::nothrow, token);
    }
}

// With the token 1000 + i it takes i + 1 blocks.
static void each_function()
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        for (size_t k = 0; k <= i; k++) {
            const size_t align = 64;
            auto *p = static_cast<char *>(by_function(i, align, 100, 1000 + i));
            for (size_t b = 0; i == 1 && p && b < 100; b++)
                require(p[b] == 0, "calloc");
            const size_t aligned = i == 7 || i == 8 ? PAGE : (i >= 4 && i <= 6) || i >= 13 ? align : 16;
            take(p, aligned, "a block of no or another alignment");
        }
}

// What is mapped leaves too little for the block, until somebody measures that nothing of it was touched.
static void under_a_limit(size_t i)
{
    const size_t mapped = size_t(30) << 20, n = 20000000;
    require(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
            "mmap");
    take(by_function(i, 64, n, 1000 + i), 16, "no block");
}

static void each_fast()
{
    void *p = nullptr;
    take(__alloc_token_0_malloc(100), 16, "0");
    take(__alloc_token_1_calloc(10, 10), 16, "1");
    take(__alloc_token_2_realloc(nullptr, 100), 16, "2");
    take(__alloc_token_3_reallocarray(nullptr, 10, 10), 16, "3");
    require(__alloc_token_4_posix_memalign(&p, 64, 100) == 0, "4");
    take(p, 64, "4");
    take(__alloc_token_5_aligned_alloc(64, 100), 64, "5");
    take(__alloc_token_6_memalign(64, 100), 64, "6");
    take(__alloc_token_7_valloc(100), 4096, "7");
    take(__alloc_token_8_pvalloc(100), 4096, "8");
    take(__alloc_token_9__Znwm(100), 16, "9");
    take(__alloc_token_10__Znam(100), 16, "10");
    take(__alloc_token_11__ZnwmRKSt9nothrow_t(100, std::nothrow), 16, "11");
    take(__alloc_token_12__ZnamRKSt9nothrow_t(100, std::nothrow), 16, "12");
    take(__alloc_token_13__ZnwmSt11align_val_t(100, 64), 64, "13");
    take(__alloc_token_14__ZnamSt11align_val_t(100, 64), 64, "14");
    take(__alloc_token_15__ZnwmSt11align_val_tRKSt9nothrow_t(100, 64, std::nothrow), 64, "15");
    take(__alloc_token_15__ZnamSt11align_val_tRKSt9nothrow_t(100, 64, std::nothrow), 64, "15");
}

static void types(char **tokens)
{
    for (int i = 0; i < 10; i++) {
        some_item = static_cast<shop::Item *>(
            __alloc_token__Znwm(sizeof(shop::Item), std::strtoull(tokens[0], nullptr, 10)));
        some_basket = static_cast<shop::Basket<int> *>(
            __alloc_token__Znwm(sizeof(shop::Basket<int>), std::strtoull(tokens[1], nullptr, 10)));
        some_plain = static_cast<union plain *>(
            __alloc_token_malloc(sizeof(union plain), std::strtoull(tokens[2], nullptr, 10)));
    }
}

static long tokens_wanted;

static void many(size_t n, size_t blocks)
{
    // Far apart, and some of them with the same lower bits.
    for (size_t i = 1; i <= static_cast<size_t>(tokens_wanted); i++)
        for (size_t k = 0; k < blocks; k++)
            std::memset(__alloc_token_malloc(n, i * 0x9E3779B97F4A7C00u + i % 7), 1, n);
}

static void *in_thread(void *unused)
{
    many(48, 100);
    return unused;
}

static void threads()
{
    pthread_t all[4];
    for (pthread_t &t : all)
        require(pthread_create(&t, nullptr, in_thread, nullptr) == 0, "a thread");
    for (pthread_t &t : all)
        pthread_join(t, nullptr);
}

static void resize()
{
    void *p = std::malloc(100);
    p = __alloc_token_realloc(p, 110, 2001); // takes the label
    __alloc_token_malloc(100, 2002);
    void *q = __alloc_token_malloc(100, 2003);
    q = __alloc_token_realloc(q, 5000, 0); // keeps the label
    void *r = __alloc_token_malloc(100, 2004);
    r = std::realloc(r, 5000); // keeps the label
    void *s = __alloc_token_malloc(100, 2005);
    s = __alloc_token_realloc(s, 2 << 20, 2006); // takes another, as a large block
    void *t = __alloc_token_realloc(__alloc_token_malloc(100, 2007), 0, 2007);
    require(p && q && r && s && !t, "realloc");
}

static void errors()
{
    void *p = &p;
    volatile size_t huge = SIZE_MAX / 2;
    errno = 0;
    require(!__alloc_token_malloc(huge, 5) && errno == ENOMEM, "malloc");
    errno = 0;
    require(!__alloc_token_calloc(huge, 3, 5) && errno == ENOMEM, "calloc");
    errno = 0;
    require(!__alloc_token_reallocarray(nullptr, huge, 3, 5) && errno == ENOMEM, "reallocarray");
    require(__alloc_token_posix_memalign(&p, 24, 100, 5) == EINVAL && p == &p, "posix_memalign, alignment");
    require(__alloc_token_posix_memalign(&p, 64, huge, 5) == ENOMEM && p == &p, "posix_memalign, size");
    errno = 0;
    require(!__alloc_token_aligned_alloc(24, 100, 5) && errno == EINVAL, "aligned_alloc");
    require(!__alloc_token__ZnwmRKSt9nothrow_t(huge, std::nothrow, 5), "new, nothrow");
    bool thrown = false;
    try {
        __alloc_token__Znwm(huge, 5);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    require(thrown, "new throws");
}

// ---- Costs ---------------------------------------------------------------------------------------------

static void mixed(bool with_tokens, size_t apart)
{
    void *blocks[40];
    for (size_t i = 0; i < 40; i++) {
        const size_t n = 24 + i % 20 * 16 + i / 20 * 200, token = (i % 20 + 1) * apart;
        blocks[i] = with_tokens ? __alloc_token_malloc(n, token) : std::malloc(n);
    }
    for (void *p : blocks)
        std::free(p);
}

static void plain_pair()
{
    std::free(std::malloc(64));
}

static void token_pair()
{
    std::free(__alloc_token_malloc(64, 0xF123456789ABCDEFu));
}

static void named_pair()
{
    std::free(__alloc_token_3_malloc(64));
}

static void unknown_pair()
{
    std::free(__alloc_token_malloc(64, 0));
}

static void mixed_plain()
{
    mixed(false, 0);
}

static void mixed_far()
{
    mixed(true, 0x9E3779B97F4A7C15u);
}

static void mixed_dense()
{
    mixed(true, 1);
}

template <void (*pairs)()>
__attribute__((noinline)) static void rounds(long n)
{
    for (long i = 0; i < n; i++)
        pairs();
}

// Who counts instructions counts those from here on.
extern "C" __attribute__((noinline)) void measured(void (*what)(long n), long n);
extern "C" void measured(void (*what)(long n), long n)
{
    what(n);
}

static void costs()
{
    static const struct {
        const char *name;
        void (*what)(long n);
        long pairs;
    } all[] = {
        {"plain", rounds<plain_pair>, 1},         {"token", rounds<token_pair>, 1},
        {"named", rounds<named_pair>, 1},         {"unknown", rounds<unknown_pair>, 1},
        {"mixed-plain", rounds<mixed_plain>, 40}, {"mixed", rounds<mixed_far>, 40},
        {"mixed-dense", rounds<mixed_dense>, 40},
    };
    for (const auto &kind : all) {
        const long n = tokens_wanted / kind.pairs;
        const pid_t child = fork();
        require(child >= 0, "fork");
        if (child == 0) {
            kind.what(n); // what a thread remembers is there then
            measured(kind.what, n);
            _exit(0);
        }
        int status = -1;
        require(waitpid(child, &status, 0) == child && status == 0, "the child");
        std::printf("%s %ld %ld\n", kind.name, static_cast<long>(child), n * kind.pairs);
    }
}

// ---- Threads and forks ---------------------------------------------------------------------------------

// Blocks with a pattern of their own, so that one that is given out twice is found.
static void *patterns(void *salt)
{
    struct {
        unsigned char *p;
        size_t n;
    } blocks[300];
    const size_t base = reinterpret_cast<size_t>(salt);
    for (int round = 0; round < 20; round++) {
        size_t i = 0;
        for (auto &b : blocks) {
            b.n = 16 + (i * 37 + base) % 700;
            b.p = static_cast<unsigned char *>(__alloc_token_malloc(b.n, (i % 30 + 1) * 0x9E3779B97F4A7C15u));
            std::memset(b.p, static_cast<int>(i++ + base), b.n);
        }
        i = 0;
        for (auto &b : blocks) {
            const unsigned char expected = static_cast<unsigned char>(i++ + base);
            require(b.p[0] == expected && b.p[b.n / 2] == expected && b.p[b.n - 1] == expected,
                    "a block twice");
            std::free(b.p);
        }
    }
    return nullptr;
}

static void forks()
{
    for (long round = 0; round < tokens_wanted; round++) {
        pthread_t all[3];
        size_t salt = 1;
        for (pthread_t &t : all)
            require(pthread_create(&t, nullptr, patterns, reinterpret_cast<void *>(salt++)) == 0, "a thread");
        patterns(nullptr);
        const pid_t child = fork();
        require(child >= 0, "fork");
        patterns(reinterpret_cast<void *>(salt));
        if (child == 0) _exit(0);
        int status = -1;
        require(waitpid(child, &status, 0) == child && status == 0, "the child");
        for (pthread_t &t : all)
            pthread_join(t, nullptr);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    tokens_wanted = argc > 2 ? std::atol(argv[2]) : 0;
    if (std::strcmp(what, "functions") == 0) each_function();
    else if (std::strcmp(what, "fast") == 0) each_fast();
    else if (std::strcmp(what, "types") == 0 && argc == 5) types(argv + 2);
    else if (std::strcmp(what, "live") == 0 && argc == 5) types(argv + 2), pause();
    else if (std::strcmp(what, "many") == 0) many(64, 1), many(64, 1);
    else if (std::strcmp(what, "threads") == 0) threads();
    else if (std::strcmp(what, "realloc") == 0) resize();
    else if (std::strcmp(what, "errors") == 0) errors();
    else if (std::strcmp(what, "misuse") == 0) {
        void *p = __alloc_token_malloc(100, 0xABC);
        std::free(p);
        std::free(p);
    } else if (std::strcmp(what, "limit") == 0) {
        under_a_limit(static_cast<size_t>(tokens_wanted));
    } else if (std::strcmp(what, "costs") == 0) {
        costs();
    } else if (std::strcmp(what, "forks") == 0) {
        forks();
    } else return 2;
    return 0;
}
