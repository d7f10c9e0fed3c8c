#include "refused.h"

#include "common/malloc/no_memory.h"
#include "common/mapped.h"

static void *ask(hak_ctx *heap, void *old, size_t align, size_t n, bool zero, hak_label label)
{
    if (old) return label ? hak_realloc_cs(heap, old, n, label, 0) : hak_realloc(heap, old, n);
    if (align) return hak_aligned_alloc_cs(heap, align, n, label, 0);
    return zero ? hak_calloc_cs(heap, 1, n, label, 0) : hak_alloc_cs(heap, n, label, 0);
}

void *hks_refused(void *old, size_t align, size_t n, bool zero, hak_label label)
{
    hak_ctx *heap = hkc_mapped_settle() ? hks_heap() : NULL;
    void *p = heap ? ask(heap, old, align, n, zero, label) : NULL;
    return p ? p : hkc_no_memory();
}
