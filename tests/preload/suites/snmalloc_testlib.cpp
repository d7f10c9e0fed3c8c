// What snmalloc's own tests call, as the functions of libc, so that they test whatever malloc the process
// has. The tests are those of the crate snmalloc-sys; they allow allocators that know less of their blocks.
#include <test/snmalloc_testlib.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <malloc.h>
#include <sched.h>

namespace snmalloc
{

void dealloc(void *p)
{
    free(p);
}
void dealloc(void *p, size_t)
{
    free(p);
}
void dealloc(void *p, size_t, size_t)
{
    free(p);
}

template <ZeroMem zero>
void *alloc(size_t size)
{
    return zero == ZeroMem::YesZero ? calloc(1, size) : malloc(size);
}
template void *alloc<ZeroMem::NoZero>(size_t);
template void *alloc<ZeroMem::YesZero>(size_t);

size_t alloc_size(const void *p)
{
    return p ? malloc_usable_size(const_cast<void *>(p)) : SIZE_MAX;
}

// Of a pointer into a block nothing is known: the tests take bounds for an answer.
size_t remaining_bytes(const void *)
{
    return SIZE_MAX;
}
bool is_owned(void *)
{
    return false;
}
void debug_check_empty(bool *result)
{
    if (result) *result = true;
}
void debug_in_use(size_t)
{
}

size_t max_small_sizeclass_bits()
{
    return 16;
}
size_t pal_address_bits()
{
    return 48;
}
uint64_t pal_tick()
{
    return (uint64_t)std::clock();
}
void pal_pause()
{
    sched_yield();
}
[[noreturn]] void error(const char *const text)
{
    std::fprintf(stderr, "%s\n", text);
    std::abort();
}

ScopedAllocHandle::ScopedAllocHandle() : ptr(nullptr)
{
}
ScopedAllocHandle::~ScopedAllocHandle() = default;
void *ScopedAllocHandle::alloc(size_t size)
{
    return malloc(size);
}
void ScopedAllocHandle::dealloc(void *p)
{
    free(p);
}
ScopedAllocHandle *ScopedAllocHandle::operator->()
{
    return this;
}
ScopedAllocHandle get_scoped_allocator()
{
    return {};
}

namespace libc
{
void *malloc_small(smallsizeclass_t size_class)
{
    return ::malloc(sizeclass_to_size_const(size_class));
}
void *__malloc_start_pointer(void *)
{
    return nullptr;
}
void *__malloc_last_byte_pointer(void *)
{
    return reinterpret_cast<void *>(UINTPTR_MAX);
}
} // namespace libc

} // namespace snmalloc

extern "C" {
void *testlib_malloc(size_t size)
{
    return malloc(size);
}
void testlib_free(void *p)
{
    free(p);
}
void *testlib_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}
size_t testlib_malloc_usable_size(void *p)
{
    return malloc_usable_size(p);
}
size_t testlib_malloc_good_size(size_t size)
{
    return size;
}
void *testlib_realloc(void *p, size_t size)
{
    return realloc(p, size);
}
void *testlib_reallocarray(void *p, size_t count, size_t size)
{
    return reallocarray(p, count, size);
}
// NetBSD's.
int testlib_reallocarr(void *to, size_t count, size_t size)
{
    int before = errno;
    void *p;
    std::memcpy(&p, to, sizeof p);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return EOVERFLOW;
    void *q = bytes ? realloc(p, bytes) : nullptr;
    if (!bytes) free(p);
    if (bytes && !q) {
        errno = before;
        return ENOMEM;
    }
    std::memcpy(to, &q, sizeof q);
    return 0;
}
void *testlib_memalign(size_t align, size_t size)
{
    return memalign(align, size);
}
int testlib_posix_memalign(void **out, size_t align, size_t size)
{
    return posix_memalign(out, align, size);
}
}
