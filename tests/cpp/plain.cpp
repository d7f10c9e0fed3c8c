// Without exceptions and RTTI: the handler is called in place of std::bad_alloc, and may leave.
#include <hakmem/hakmem.hpp>

#include <csetjmp>
#include <cstdio>
#include <vector>

static std::jmp_buf out;
static std::size_t wanted;

static void no_memory(void *user, std::size_t n)
{
    ++*static_cast<int *>(user);
    wanted = n;
    std::longjmp(out, 1);
}

int main()
{
    static int calls;
    static hak::context heap;
    if (!heap.ok() || !heap.limit(1 << 20)) return 1;
    heap.on_no_memory(no_memory, &calls);
    hak::resource memory(heap), same(heap);
    if (!memory.is_equal(memory) || memory.is_equal(*std::pmr::null_memory_resource())) return 2;
    std::pmr::vector<int> some({1, 2, 3}, &memory);
    if (!setjmp(out)) {
        (void)memory.allocate(5 << 20);
        return 3;
    }
    if (calls != 1 || wanted != 5 << 20 || some[2] != 3) return 4;
    std::printf("no memory for %zu bytes\n", wanted);
    return 0;
}
