// Catch2 of either version: 2, which is one header, or 3, which is a library.
#ifndef TEST_CATCH_H
#define TEST_CATCH_H

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>

using Catch::Approx;
namespace Catch
{
inline auto Contains(const std::string &text)
{
    return Matchers::ContainsSubstring(text);
}
} // namespace Catch
#else
#include <catch2/catch.hpp>
#endif

#endif
