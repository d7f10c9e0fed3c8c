# The adapters for WAMR and wasm2c. They read structures of the runtime whose layout its version and settings decide,
# so they are compiled with the runtime that the host links: this file is included by hakmem's own build and, with
# the sources beside it, by find_package(hakmem).

# hakmem_add_wasm_wamr(<target> LIBRARY <library> [INCLUDES <folder>...] [DEFINITIONS <definition>...])
# A static library with what hakmem/wasm_wamr.h declares. <library> is a target of the same project that compiles WAMR's
# sources, as its CMake files make it (vmlib): include paths and definitions are taken from there. For a file, or a
# target made elsewhere, they are given: those with which WAMR was compiled, its private folders too.
function(hakmem_add_wasm_wamr target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "INCLUDES;DEFINITIONS")
    if(NOT arg_LIBRARY OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "hakmem_add_wasm_wamr(<target> LIBRARY <library> [INCLUDES ...] [DEFINITIONS ...])")
    endif()
    if(NOT arg_INCLUDES AND TARGET ${arg_LIBRARY})
        get_target_property(folder ${arg_LIBRARY} SOURCE_DIR)
        get_directory_property(arg_INCLUDES DIRECTORY ${folder} INCLUDE_DIRECTORIES)
        get_directory_property(arg_DEFINITIONS DIRECTORY ${folder} COMPILE_DEFINITIONS)
        get_target_property(definitions ${arg_LIBRARY} COMPILE_DEFINITIONS)
        if(definitions)
            list(APPEND arg_DEFINITIONS ${definitions})
        endif()
    endif()
    # wasm_export.h is for hosts; the other headers are for five files, which see what the public ones do not tell.
    set(public)
    foreach(folder IN LISTS arg_INCLUDES)
        if(EXISTS ${folder}/wasm_export.h)
            set(public ${folder})
        endif()
    endforeach()
    if(NOT public)
        message(FATAL_ERROR "hakmem_add_wasm_wamr: no wasm_export.h in the folders of INCLUDES: ${arg_INCLUDES}")
    endif()
    set(sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/wamr)
    add_library(${target} STATIC
        ${sources}/memory.c ${sources}/instance.c ${sources}/snapshot.c ${sources}/state.c ${sources}/files.c
        ${sources}/aot.c ${sources}/steps.c ${sources}/machine_code.c)
    target_compile_features(${target} PRIVATE c_std_11)
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_link_libraries(${target} PUBLIC hakmem::wasm ${arg_LIBRARY})
    # For limits on steps, and accounts of machine code: see steps.c and machine_code.c. The functions are there whatever
    # else of the adapter the program uses.
    foreach(function wasm_exec_env_create os_mmap os_munmap)
        target_link_options(${target} INTERFACE LINKER:--wrap=${function} LINKER:--undefined=__wrap_${function})
    endforeach()
    target_include_directories(${target} SYSTEM PUBLIC ${public})
    # As a system's: warnings about WAMR's headers are WAMR's.
    set(options -std=gnu11 -fno-sanitize=undefined)
    foreach(folder IN LISTS arg_INCLUDES)
        list(APPEND options -isystem ${folder})
    endforeach()
    set_source_files_properties(${sources}/state.c ${sources}/files.c ${sources}/aot.c ${sources}/steps.c
        ${sources}/machine_code.c PROPERTIES
        COMPILE_DEFINITIONS "${arg_DEFINITIONS}" COMPILE_OPTIONS "${options}")
endfunction()

# hakmem_add_wasm_wasm2c(<target>)
# A static library with what hakmem/wasm_wasm2c.h declares, for guests compiled to C; who links it may include
# wasm-rt-impl.h, too. wasm2c's runtime is found, or given by the variables HAKMEM_WASM_RT (the library wasm-rt-impl),
# HAKMEM_WASM_RT_INCLUDE (the folder of wasm-rt.h) and HAKMEM_WASM_RT_IMPL_INCLUDE (that of wasm-rt-impl.h).
# <target> is not made where something is missing, or is of another wabt than 1.0.32, whose functions have other
# parameters: see HAKMEM_WASM_RT_FOUND in the caller's scope, and HAKMEM_WASM_RT_WHY, which says what it is.
function(hakmem_add_wasm_wasm2c target)
    find_library(HAKMEM_WASM_RT wasm-rt-impl)
    find_path(HAKMEM_WASM_RT_INCLUDE wasm-rt.h)
    find_path(HAKMEM_WASM_RT_IMPL_INCLUDE wasm-rt-impl.h
        HINTS ${HAKMEM_WASM_RT_INCLUDE} PATH_SUFFIXES ../share/wabt/wasm2c share/wabt/wasm2c)
    mark_as_advanced(HAKMEM_WASM_RT HAKMEM_WASM_RT_INCLUDE HAKMEM_WASM_RT_IMPL_INCLUDE)
    set(HAKMEM_WASM_RT_FOUND FALSE PARENT_SCOPE)
    set(HAKMEM_WASM_RT_WHY "wasm2c's runtime is not found (Debian package: wabt)" PARENT_SCOPE)
    if(NOT HAKMEM_WASM_RT OR NOT HAKMEM_WASM_RT_INCLUDE OR NOT HAKMEM_WASM_RT_IMPL_INCLUDE)
        return()
    endif()
    file(READ ${HAKMEM_WASM_RT_INCLUDE}/wasm-rt.h header)
    if(NOT header MATCHES "wasm_rt_allocate_memory\\(wasm_rt_memory_t[^;,]*,[^;,]*uint32_t[^;,]*,[^;,]*uint32_t[^;,]*\\);")
        set(HAKMEM_WASM_RT_WHY "${HAKMEM_WASM_RT_INCLUDE}/wasm-rt.h is not that of wabt 1.0.32" PARENT_SCOPE)
        return()
    endif()
    set(HAKMEM_WASM_RT_FOUND TRUE PARENT_SCOPE)
    set(HAKMEM_WASM_RT_WHY "" PARENT_SCOPE)
    set(sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/wasm2c)
    add_library(${target} STATIC
        ${sources}/memory.c ${sources}/parts.c ${sources}/snapshot.c ${sources}/stack.c ${sources}/steps.c
        ${sources}/table.c)
    target_compile_features(${target} PRIVATE c_std_11)
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_include_directories(${target} SYSTEM PUBLIC ${HAKMEM_WASM_RT_INCLUDE} ${HAKMEM_WASM_RT_IMPL_INCLUDE})
    target_link_libraries(${target} PUBLIC hakmem::wasm ${HAKMEM_WASM_RT} m)
    foreach(function allocate grow free)
        foreach(part memory funcref_table externref_table)
            target_link_options(${target} INTERFACE LINKER:--wrap=wasm_rt_${function}_${part})
        endforeach()
    endforeach()
endfunction()

# hakmem_wasm2c_steps(<in> <out>)
# <out> is the C file <in> of wasm2c, which is made by then or by a rule of this build, with its calls, loops and
# instructions on ranges counted, for hak_wasm_tenant_steps. Compile <out> in place of <in>.
function(hakmem_wasm2c_steps in out)
    set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/wasm2c/steps.cmake)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DIN=${in} -DOUT=${out} -P ${script} DEPENDS ${in} ${script} VERBATIM)
endfunction()
