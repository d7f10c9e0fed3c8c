/* Python is loaded, and it is awaited that it is initialized. */
#ifndef HKP_AWAIT_H
#define HKP_AWAIT_H

#include "base/core.h"

/* The main thread gets a first call once Python is initialized. */
void hkp_await(int (*first_call)(void));
/* Read by the hooks of RAW, where a call passes soon after, and which then have a look. */
extern bool hkp_awaited HKP_HIDDEN;
void hkp_await_look(void);

#endif
