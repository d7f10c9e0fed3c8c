// An allocator for the nodes of containers: what was freed is handed out again, without a question to malloc,
// which takes long under AddressSanitizer. For one thread.
#pragma once

#include <cstddef>
#include <new>

namespace test
{

template <typename T>
struct Recycled {
    using value_type = T;

    Recycled() = default;
    template <typename U>
    Recycled(const Recycled<U> &)
    {
    }
    T *allocate(size_t n)
    {
        if (n != 1 || !spare) return static_cast<T *>(::operator new(n * sizeof(T)));
        Spare *node = spare;
        spare = node->next;
        return reinterpret_cast<T *>(node);
    }
    void deallocate(T *p, size_t n)
    {
        if (n != 1) ::operator delete(p);
        else spare = new (p) Spare{spare};
    }
    bool operator==(const Recycled &) const
    {
        return true;
    }
    bool operator!=(const Recycled &) const
    {
        return false;
    }

  private:
    struct Spare {
        Spare *next;
    };
    static_assert(sizeof(T) >= sizeof(Spare));
    static inline Spare *spare = nullptr;
};

} // namespace test
