# Lua 5.5 for the tests, where the machine has none: a shared library as a distribution would build it, and the
# interpreter lua5.5 in the folder LUA_55_INTERPRETER_DIR. The package lupa carries the sources. Nothing that is built
# with it is installed. Sets what pkg_search_module(LUA_55) would, and LUA_55_FOR_TESTS.

include(${CMAKE_CURRENT_LIST_DIR}/Packages.cmake)

macro(hakmem_make_lua55)
    hakmem_fetch_lupa(lupa)
    if(lupa)
        set(folder ${lupa}/lupa-2.8/third-party/lua55)
        set(LUA_55_INTERPRETER_DIR ${CMAKE_CURRENT_BINARY_DIR}/lua5.5)
        file(GLOB lua55_sources ${folder}/l*.c)
        list(REMOVE_ITEM lua55_sources ${folder}/lua.c ${folder}/ltests.c)
        add_library(lua55 SHARED ${lua55_sources})
        set_target_properties(lua55 PROPERTIES OUTPUT_NAME lua5.5 SOVERSION 0
            LIBRARY_OUTPUT_DIRECTORY ${LUA_55_INTERPRETER_DIR})
        target_include_directories(lua55 SYSTEM INTERFACE ${folder})
        add_executable(lua55_interpreter ${lua55_sources} ${folder}/lua.c)
        set_target_properties(lua55_interpreter PROPERTIES OUTPUT_NAME lua5.5 ENABLE_EXPORTS ON
            RUNTIME_OUTPUT_DIRECTORY ${LUA_55_INTERPRETER_DIR})
        foreach(target lua55 lua55_interpreter)
            target_link_libraries(${target} PRIVATE m ${CMAKE_DL_LIBS})
            target_compile_definitions(${target} PRIVATE LUA_USE_LINUX)
            target_compile_options(${target} PRIVATE -O2 -fomit-frame-pointer -w)
            if(HAKMEM_SANITIZE) # a distribution's has no sanitizer
                target_compile_options(${target} PRIVATE -fno-sanitize=all)
                target_link_options(${target} PRIVATE -fno-sanitize=all)
            endif()
        endforeach()
        add_library(PkgConfig::LUA_55 ALIAS lua55)
        set(LUA_55_FOUND TRUE)
        set(LUA_55_FOR_TESTS TRUE)
        set(LUA_55_INCLUDE_DIRS ${folder})
    endif()
endmacro()
