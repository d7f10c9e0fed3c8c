/* What tests/install/layers.py must see: a file of the lowest layer that includes and calls a higher one,
 * and calls the host's error callback. */
#include "api/offence.h"

void hk_offence_low(void (*on_error)(void));
void hk_offence_low(void (*on_error)(void))
{
    hk_offence_high();
    on_error();
}
