/* WAMR's allocator. It tells neither sizes on free nor the old size on realloc. */
#include <hakmem/wasm_wamr.h>

#include <string.h>

static void *allocate(mem_alloc_usage_t usage, void *host, unsigned size)
{
    return usage == Alloc_For_LinearMemory ? hak_wasm_memory_new(host, size) : hak_wasm_alloc(host, size);
}

static void *reallocate(mem_alloc_usage_t usage, bool full_size_mapped, void *host, void *p, unsigned size)
{
    (void)full_size_mapped;
    if (usage != Alloc_For_LinearMemory) return hak_wasm_realloc(host, p, size);
    if (size == 0) return NULL; /* 65,536 pages, in 32 bits */
    if (!p) return hak_wasm_memory_new(host, size);
    return hak_wasm_memory_grow(host, p, size) == 0 ? p : NULL;
}

static void release(mem_alloc_usage_t usage, void *host, void *p)
{
    if (usage == Alloc_For_LinearMemory) hak_wasm_memory_free(host, p);
    else hak_wasm_free(host, p);
}

void hak_wasm_wamr_args(hak_wasm_host *host, RuntimeInitArgs *args)
{
    args->mem_alloc_type = Alloc_With_Allocator;
    /* WAMR's table has object pointers, whatever the functions' types are. */
    void *(*malloc_fn)(mem_alloc_usage_t, void *, unsigned) = allocate;
    void *(*realloc_fn)(mem_alloc_usage_t, bool, void *, void *, unsigned) = reallocate;
    void (*free_fn)(mem_alloc_usage_t, void *, void *) = release;
    memcpy(&args->mem_alloc_option.allocator.malloc_func, &malloc_fn, sizeof malloc_fn);
    memcpy(&args->mem_alloc_option.allocator.realloc_func, &realloc_fn, sizeof realloc_fn);
    memcpy(&args->mem_alloc_option.allocator.free_func, &free_fn, sizeof free_fn);
    args->mem_alloc_option.allocator.user_data = host;
}
