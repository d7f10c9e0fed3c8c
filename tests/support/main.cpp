// The main of the tests where Catch2 brings none.
#define CATCH_CONFIG_MAIN
#include "catch.h"
