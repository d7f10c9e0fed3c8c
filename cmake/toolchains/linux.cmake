# Linux on another processor, by Debian's cross compilers:
#     cmake -S . -B build/arm64 -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/linux.cmake -DHAKMEM_PROCESSOR=aarch64
# HAKMEM_PROCESSOR: aarch64 or riscv64. ctest runs the tests by qemu-user where it is (Debian: qemu-user-static).
set(HAKMEM_PROCESSOR aarch64 CACHE STRING "aarch64 or riscv64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HAKMEM_PROCESSOR)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${HAKMEM_PROCESSOR})
set(CMAKE_C_COMPILER ${HAKMEM_PROCESSOR}-linux-gnu-gcc)
find_program(HAKMEM_CXX ${HAKMEM_PROCESSOR}-linux-gnu-g++)
if(HAKMEM_CXX)
    set(CMAKE_CXX_COMPILER ${HAKMEM_CXX})
endif()
set(CMAKE_FIND_ROOT_PATH /usr/${HAKMEM_PROCESSOR}-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
find_program(HAKMEM_QEMU qemu-${HAKMEM_PROCESSOR}-static)
if(HAKMEM_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${HAKMEM_QEMU} -L /usr/${HAKMEM_PROCESSOR}-linux-gnu)
endif()
