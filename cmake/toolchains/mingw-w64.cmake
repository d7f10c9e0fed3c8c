# Windows on x86-64, by MinGW's gcc with threads of POSIX (Debian: g++-mingw-w64-x86-64-posix):
#     cmake -S . -B build/windows -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/mingw-w64.cmake
# Libraries of other folders, such as a Lua, are found with -DCMAKE_FIND_ROOT_PATH=FOLDER, and by pkg-config with
# PKG_CONFIG_LIBDIR. Where wine is, ctest runs the tests in it (Debian: wine64).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
list(APPEND CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
find_program(HAKMEM_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(HAKMEM_WINE)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${HAKMEM_WINE})
endif()
