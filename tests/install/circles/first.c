#include "first.h"

void hko_second(void);
void hko_first(void)
{
    hko_second();
}
