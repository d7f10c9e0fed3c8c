/* What tests/install/layers.py must see: a file of the lowest layer that includes and calls a higher one. */
#include "api/offence.h"

void hk_offence_low(void);
void hk_offence_low(void)
{
    hk_offence_high();
}
