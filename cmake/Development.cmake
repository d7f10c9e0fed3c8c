# Settings for work on hakmem itself; a project that adds hakmem as a folder keeps its own.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(HAKMEM_CCACHE ccache)
mark_as_advanced(HAKMEM_CCACHE)
if(HAKMEM_CCACHE)
    foreach(lang C CXX)
        if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
            set(CMAKE_${lang}_COMPILER_LAUNCHER "${HAKMEM_CCACHE}")
        endif()
    endforeach()
endif()

if(MSVC) # clang-cl, whose -Wall is everything that there is
    add_compile_options(/W4 $<$<BOOL:${HAKMEM_WERROR}>:/WX>)
    return()
endif()
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# In C++ gcc leaves the sign out of -Wconversion and clang does not: the same for both.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-sign-conversion>)
if(HAKMEM_WERROR)
    add_compile_options(-Werror)
endif()
# What gcc 14 and clang 16 refuse, older compilers only warn of.
foreach(broken implicit-function-declaration implicit-int int-conversion incompatible-pointer-types)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-Werror=${broken}>)
endforeach()

# HAKMEM_SANITIZER_PRELOAD: what LD_PRELOAD must name so that an ordinary program (luajit, say) can load a
# module of this build. Empty without sanitizers; undefined alone needs none.
set(HAKMEM_SANITIZER_PRELOAD "")
if(HAKMEM_ASSERT)
    add_compile_definitions(HAKMEM_ASSERT)
endif()
if(HAKMEM_SANITIZE)
    add_compile_options(-fsanitize=${HAKMEM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${HAKMEM_SANITIZE})
    foreach(pair address=asan thread=tsan)
        string(REPLACE "=" ";" pair ${pair})
        list(GET pair 0 sanitizer)
        list(GET pair 1 runtime)
        if(HAKMEM_SANITIZE MATCHES ${sanitizer} AND CMAKE_C_COMPILER_ID STREQUAL GNU)
            execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${runtime}.so
                            OUTPUT_VARIABLE HAKMEM_SANITIZER_PRELOAD OUTPUT_STRIP_TRAILING_WHITESPACE)
        endif()
    endforeach()
endif()
