// What takes a third of the time that a test takes to compile: Catch2, and the standard library's headers that most
// tests include.
#include "catch.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>
