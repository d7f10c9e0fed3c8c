/* hakmem for C++17: a header over hakmem.h, nothing to link beside the core.
 *
 *   hak::context     a context (hak_ctx) that ends with its object
 *   hak::label_scope a label for everything that is allocated while it lives
 *   hak::resource    a std::pmr::memory_resource on a context
 *   hak::allocator   an allocator for the containers of the standard library, on a context
 *
 *       hak::context heap;
 *       hak::resource memory(heap, heap.label("rows"));
 *       std::pmr::vector<std::pmr::string> rows(&memory);
 *
 * STABILITY  Stable.
 *
 * Errors: if memory is out, the functions of hak::context return nullptr. Containers cannot take nullptr, so
 * hak::resource and hak::allocator throw std::bad_alloc where exceptions are enabled in the compiler and
 * HAKMEM_CPP_EXCEPTIONS is 1. By default it is 0, and they call hak::context's handler, and std::abort() if
 * there is none or it returns. Every file of a program must see the same HAKMEM_CPP_EXCEPTIONS. Threads: one
 * at a time, as for the context, unless it is shared. A hak::label_scope counts for its context, not for a
 * thread: in a shared context give labels to resources and allocators instead. Cost: that of the function of
 * hakmem.h which each one calls, with a test and a load or two for the context and the label; hak::resource
 * adds a virtual call, as each memory_resource does. A hak::context takes one block of 32 bytes more. Since
 * 0.1. */
#ifndef HAKMEM_HPP
#define HAKMEM_HPP

#include <hakmem/hakmem.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#ifndef HAKMEM_CPP_EXCEPTIONS
#define HAKMEM_CPP_EXCEPTIONS 0
#endif

namespace hak
{

/* Is called when a resource or an allocator has no memory for n bytes. It ends the program in the host's own
 * way, or leaves by longjmp. */
using memory_handler = void(void *user, std::size_t n);

class context
{
  public:
    /* Makes a context, as hak_ctx_new: space nullptr = a space of its own, options nullptr = defaults. ok()
     * tells whether there is a context; if not, every allocation is nullptr. */
    explicit context(hak_space *space = nullptr, const hak_options *options = nullptr) noexcept
        : state_(make(hak_ctx_new(space, options)))
    {
    }
    context(context &&other) noexcept : state_(std::exchange(other.state_, nullptr))
    {
    }
    /* Ends the heap that was here, as the destructor does. */
    context &operator=(context &&other) noexcept
    {
        context from(std::move(other));
        std::swap(state_, from.state_);
        return *this;
    }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    /* Frees every block at once, live or not. No destructor of an object in the context runs. Resources and
     * allocators on the context must not be used any more. */
    ~context()
    {
        if (state_) hak_ctx_destroy(state_->ctx);
    }

    bool ok() const noexcept
    {
        return state_ != nullptr;
    }
    /* Gives up the context, which the caller ends by hak_ctx_destroy. Resources and allocators on it stay
     * good until then, because their block of 32 bytes lives on; so hak_ctx_retire would wait for ever. */
    [[nodiscard]] hak_ctx *release() noexcept
    {
        hak_ctx *ctx = get();
        state_ = nullptr;
        return ctx;
    }
    /* Returns the context itself, for the functions of hakmem.h; nullptr if there is none. */
    hak_ctx *get() const noexcept
    {
        return state_ ? state_->ctx : nullptr;
    }

    /* Does what hak_alloc_cs does, with the label of the innermost hak::label_scope, else 0. */
    void *allocate(std::size_t n) noexcept
    {
        return state_ ? hak_alloc_cs(state_->ctx, n, state_->label, 0) : nullptr;
    }
    /* Does what hak_realloc does: a block keeps its label. p nullptr = allocate(n). */
    void *reallocate(void *p, std::size_t n) noexcept
    {
        if (!p) return allocate(n);
        return state_ ? hak_realloc(state_->ctx, p, n) : nullptr;
    }
    void deallocate(void *p) noexcept
    {
        if (state_) hak_free(state_->ctx, p);
    }
    /* Does what hak_label_define does: 0 = failed. */
    hak_label label(const char *name) noexcept
    {
        return state_ ? hak_label_define(state_->ctx, name) : hak_label(0);
    }
    /* Does what hak_limit does, without a soft limit. */
    bool limit(std::size_t hard) noexcept
    {
        return state_ && hak_limit(state_->ctx, 0, hard, nullptr, nullptr) == 0;
    }
    hak_stats stats() const noexcept
    {
        hak_stats s{};
        s.size = sizeof s;
        if (state_) hak_ctx_stats(state_->ctx, &s);
        return s;
    }
    std::size_t live_bytes() const noexcept
    {
        return state_ ? hak_ctx_live_bytes(state_->ctx) : 0;
    }
    /* Without exceptions: sets the function that is called in place of std::bad_alloc. nullptr = none. */
    void on_no_memory(memory_handler *handler, void *user = nullptr) noexcept
    {
        if (!state_) return;
        state_->handler = handler;
        state_->user = user;
    }

  private:
    friend class label_scope;
    friend class place;
    /* Lies in the context's own memory, so that a moved context keeps its resources. */
    struct state {
        hak_ctx *ctx;
        memory_handler *handler;
        void *user;
        hak_label label;
    };
    static state *make(hak_ctx *ctx) noexcept
    {
        void *p = ctx ? hak_alloc(ctx, sizeof(state)) : nullptr;
        if (p) return ::new (p) state{ctx, nullptr, nullptr, 0};
        hak_ctx_destroy(ctx);
        return nullptr;
    }

    state *state_;
};

/* Where resources and allocators take memory from: a context and a label. */
class place
{
  public:
    /* label 0: that of the innermost hak::label_scope at each allocation. */
    explicit place(context &ctx, hak_label label = 0) noexcept : state_(ctx.state_), label_(label)
    {
    }

    void *take(std::size_t n, std::size_t align) const
    {
        void *p = nullptr;
        if (state_) {
            hak_label label = label_ ? label_ : state_->label;
            /* If the alignment of hak_alloc is enough, no other function is needed. */
            if (align <= 8 || (align <= 16 && n % 16 == 0 && n)) p = hak_alloc_cs(state_->ctx, n, label, 0);
            else p = hak_aligned_alloc_cs(state_->ctx, align, n, label, 0);
        }
        if (!p) fail(n);
        return p;
    }
    void give(void *p, std::size_t n) const noexcept
    {
        if (state_) hak_free_sized(state_->ctx, p, n);
    }
    [[noreturn]] void fail(std::size_t n) const
    {
#if HAKMEM_CPP_EXCEPTIONS
        (void)n;
        throw std::bad_alloc();
#else
        if (state_ && state_->handler) state_->handler(state_->user, n);
        std::abort();
#endif
    }
    /* Returns whether one may free the blocks of the other. */
    bool operator==(const place &other) const noexcept
    {
        return state_ == other.state_;
    }

  private:
    context::state *state_;
    hak_label label_;
};

/* From here to the end of the block, an allocation in the context without a label gets this one. Scopes
 * nest. */
class label_scope
{
  public:
    label_scope(context &ctx, hak_label label) noexcept : state_(ctx.state_), before_(0)
    {
        if (state_) before_ = std::exchange(state_->label, label);
    }
    ~label_scope()
    {
        if (state_) state_->label = before_;
    }
    label_scope(const label_scope &) = delete;
    label_scope &operator=(const label_scope &) = delete;

  private:
    context::state *state_;
    hak_label before_;
};

/* For std::pmr containers. Resources on one context are equal; without RTTI each is equal to itself alone,
 * and containers copy what they would move. A resource must not outlive its context, but may outlive the
 * object hak::context that was moved from. */
class resource : public std::pmr::memory_resource
{
  public:
    explicit resource(context &ctx, hak_label label = 0) noexcept : place_(ctx, label)
    {
    }

  private:
    void *do_allocate(std::size_t n, std::size_t align) override
    {
        return place_.take(n, align);
    }
    void do_deallocate(void *p, std::size_t n, std::size_t) override
    {
        place_.give(p, n);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        const resource *r = dynamic_cast<const resource *>(&other);
        return r && r->place_ == place_;
#else
        return this == &other;
#endif
    }

    place place_;
};

/* For containers that take an allocator as their type. Allocators are equal if they share a context, whatever
 * their labels. */
template <class T>
class allocator
{
  public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    explicit allocator(context &ctx, hak_label label = 0) noexcept : place_(ctx, label)
    {
    }
    template <class U>
    allocator(const allocator<U> &other) noexcept : place_(other.where())
    {
    }

    T *allocate(std::size_t count)
    {
        if (count > (std::numeric_limits<std::size_t>::max)() / sizeof(T))
            place_.fail((std::numeric_limits<std::size_t>::max)());
        return static_cast<T *>(place_.take(count * sizeof(T), alignof(T)));
    }
    void deallocate(T *p, std::size_t count) noexcept
    {
        place_.give(p, count * sizeof(T));
    }
    const place &where() const noexcept
    {
        return place_;
    }

  private:
    place place_;
};

template <class T, class U>
bool operator==(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return a.where() == b.where();
}
template <class T, class U>
bool operator!=(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return !(a == b);
}

} // namespace hak

#endif
