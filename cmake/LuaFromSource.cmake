# PUC Lua from its sources, for tests alone. Nothing that is built with it is installed.

include(${CMAKE_CURRENT_LIST_DIR}/Packages.cmake)

# The shared library of Lua `version` in `place`, under the name that distributions have, of the sources in `folder`.
function(hakmem_add_lua_library target version folder place)
    file(GLOB sources ${folder}/l*.c)
    list(REMOVE_ITEM sources ${folder}/lua.c ${folder}/luac.c ${folder}/ltests.c)
    add_library(${target} SHARED ${sources})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME lua${version} SOVERSION 0 LIBRARY_OUTPUT_DIRECTORY ${place})
    hakmem_compile_lua(${target})
endfunction()

function(hakmem_compile_lua target)
    target_compile_options(${target} PRIVATE -w)
    target_compile_definitions(${target} PRIVATE LUA_USE_LINUX)
    target_link_libraries(${target} PRIVATE m ${CMAKE_DL_LIBS})
endfunction()

# LuaJIT of the sources in `folder`, by its own Makefile: the shared library under the name that distributions have, and
# the interpreter, in `place`.
function(hakmem_add_luajit_library target folder place)
    set(library ${place}/libluajit-5.1.so.2)
    add_custom_command(OUTPUT ${library} ${place}/luajit
        COMMAND ${CMAKE_COMMAND} -E copy_directory ${folder} ${place}/source
        COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS
            make -s -C ${place}/source/src BUILDMODE=dynamic CC=${CMAKE_C_COMPILER} > ${place}/log 2>&1
        COMMAND ${CMAKE_COMMAND} -E copy ${place}/source/src/libluajit.so ${library}
        COMMAND ${CMAKE_COMMAND} -E copy ${place}/source/src/luajit ${place}/luajit
        COMMENT "Building LuaJIT from its sources" VERBATIM)
    add_custom_target(${target} ALL DEPENDS ${library})
endfunction()

# Lua 5.5 where the machine has none: that library, and the interpreter lua5.5 in the folder LUA_55_INTERPRETER_DIR. The
# package lupa carries the sources. Sets what pkg_search_module(LUA_55) would, and LUA_55_FOR_TESTS.
macro(hakmem_make_lua55)
    hakmem_fetch_lupa(lupa)
    if(lupa)
        set(folder ${lupa}/lupa-2.8/third-party/lua55)
        set(LUA_55_INTERPRETER_DIR ${CMAKE_CURRENT_BINARY_DIR}/lua5.5)
        hakmem_add_lua_library(lua55 5.5 ${folder} ${LUA_55_INTERPRETER_DIR})
        target_include_directories(lua55 SYSTEM INTERFACE ${folder})
        get_target_property(lua55_sources lua55 SOURCES)
        add_executable(lua55_interpreter ${lua55_sources} ${folder}/lua.c)
        set_target_properties(lua55_interpreter PROPERTIES OUTPUT_NAME lua5.5 ENABLE_EXPORTS ON
            RUNTIME_OUTPUT_DIRECTORY ${LUA_55_INTERPRETER_DIR})
        hakmem_compile_lua(lua55_interpreter)
        foreach(target lua55 lua55_interpreter)
            target_compile_options(${target} PRIVATE -O2 -fomit-frame-pointer)
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
