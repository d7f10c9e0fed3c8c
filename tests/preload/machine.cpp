// Allocates in functions of C++ with known names and lines, for test_machine.py; compiled with debug
// information.
#include <cstdlib>
#include <cstring>

namespace shop
{

// Inlined into its caller.
static inline __attribute__((always_inline)) void *grab(std::size_t n)
{
    return std::malloc(n); // grab
}

template <typename T>
struct Basket {
    __attribute__((noinline)) T *fill(std::size_t n);
};

template <typename T>
T *Basket<T>::fill(std::size_t n)
{
    T *p = static_cast<T *>(grab(n * sizeof(T))); // fill
    std::memset(p, 1, n * sizeof(T));
    return p;
}

} // namespace shop

int main()
{
    shop::Basket<int> basket;
    int *volatile kept = basket.fill(1000000); // main
    return kept == nullptr;
}
