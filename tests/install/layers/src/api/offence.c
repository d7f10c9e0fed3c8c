#include "api/offence.h"

void hk_offence_high(void)
{
}
