/* Which module is imported: one more frame of a stack, outside of those of the import system. Its name is the first
 * argument of importlib's _find_and_load, which runs once for each module that is not loaded yet. */
#ifndef HKP_IMPORT_H
#define HKP_IMPORT_H

#include "lines/stack.h"

struct hkc_json;

/* The frame behind this one of the stack, as a line of no file that is called "import NAME"; 0 = none. Nothing is
 * allocated, and no code of Python runs. */
uintptr_t hkp_import_of(const hkp_stack *stack, const hkp_stack_frame *frame);
/* The array "imports" of the open context: what lives of each module that was imported, from the profile. */
void hkp_imports_json(struct hkc_json *w);

#endif
