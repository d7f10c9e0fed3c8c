#include "first.h"

void hko_second(void);
void hko_second(void)
{
}
