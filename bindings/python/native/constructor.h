/* Calls that make an object of one type: link-time optimisation puts constructors into the interpreter loop
 * and into other functions of no part. */
#ifndef HKP_CONSTRUCTOR_H
#define HKP_CONSTRUCTOR_H

#include "native/subsystem.h"

#include <stdint.h>

/* Where objects of the interpreter's image lie. Before the other function. */
void hkp_constructor_start(const void *type_type);

/* The part to which the type belongs that is the first argument of the call with this return address, if that
 * is a constant; HKP_CORE = it is not. */
hkp_subsystem hkp_constructor_part(uintptr_t pc);

#endif
