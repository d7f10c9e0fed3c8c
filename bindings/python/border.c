/* The first of the files of seldom code, in the order of the link: see CMakeLists.txt. */
#include "seldom.h"

const char hk_py_seldom_constants[16] = "hakmem: seldom";

void hk_py_seldom_code(void)
{
}
