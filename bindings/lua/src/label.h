/* Which part of the interpreter a block belongs to: a lua_Alloc that gives every block a label. */
#ifndef HKL_LABEL_H
#define HKL_LABEL_H

#include "state.h"

/* NULL = no memory. The first call of a process learns the runtime's allocation sites (a few ms); later
 * ones only define the labels. */
hkl_labels *hkl_labels_new(hak_ctx *ctx);
void hkl_labels_delete(hkl_labels *labels);

/* lua_Alloc; ud is the hkl_state, with labels set. */
void *hkl_labels_alloc(void *ud, void *ptr, size_t osize, size_t nsize);
/* The same under a limit: what the context refuses passes hkl_refused. */
void *hkl_labels_alloc_limited(void *ud, void *ptr, size_t osize, size_t nsize);

/* The same in a shared context. */
void *hkl_labels_alloc_shared(void *ud, void *ptr, size_t osize, size_t nsize);

/* The same without a limit, for a state with a sampled profile that runs. */
void *hkl_labels_alloc_sampled(void *ud, void *ptr, size_t osize, size_t nsize);
/* The same, without labels where there are none, for a state with a profile that runs. */
void *hkl_labels_alloc_profiled(void *ud, void *ptr, size_t osize, size_t nsize);
/* ... that is exact. */
void *hkl_labels_alloc_exact(void *ud, void *ptr, size_t osize, size_t nsize);
/* ... that counts by line, even after it has ended. */
void *hkl_labels_alloc_lines(void *ud, void *ptr, size_t osize, size_t nsize);

/* The label for everything that lua_newstate makes, to be the scope while it runs. */
hak_label hkl_labels_registry(const hkl_labels *labels);
/* The label of what the compiler of LuaJIT keeps within a bound: traces, which it forgets all at once when there are
 * too many, or too much machine code. 0 = the runtime has no compiler, or labels is NULL. */
hak_label hkl_labels_bounded(const hkl_labels *labels);
/* Returns the label's name for the name that a program asks for: nothing bounds what the program keeps, so that it does
 * not get the label of hkl_labels_bounded. */
const char *hkl_labels_name(const char *name);
/* The label `other`. */
hak_label hkl_labels_other(const hkl_labels *labels);

#endif
