# Labels per runtime, and the reader of unwind tables held against libdw, which nothing else links.

if(NOT TARGET test_catch)
    return()
endif()

foreach(name ${HAKMEM_LUA_RUNTIMES})
    set(test test_lua_label_${name})
    add_executable(${test} label/kinds.cpp label/real.cpp)
    target_include_directories(${test} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/bindings/lua/src)
    target_compile_definitions(${test} PRIVATE PROGRAMS="${CMAKE_CURRENT_SOURCE_DIR}/programs/")
    if(name STREQUAL luajit)
        target_compile_definitions(${test} PRIVATE HK_LUA_LUAJIT)
    endif()
    target_link_libraries(${test} PRIVATE hakmem_lua_${name} PkgConfig::LUA_${name} test_catch test_support
        Threads::Threads)
    add_test(NAME lua_label_${name} COMMAND ${test})
    set_tests_properties(lua_label_${name} PROPERTIES LABELS lua TIMEOUT 300)
endforeach()

find_package(PkgConfig QUIET)
pkg_check_modules(LUA_TEST_DW QUIET IMPORTED_TARGET libdw libelf)
if(LUA_TEST_DW_FOUND AND HAKMEM_LUA_RUNTIMES)
    list(GET HAKMEM_LUA_RUNTIMES 0 name)
    add_executable(test_lua_cfi label/cfi.cpp)
    target_include_directories(test_lua_cfi PRIVATE ${PROJECT_SOURCE_DIR}/bindings/lua/src)
    target_link_libraries(test_lua_cfi PRIVATE hakmem_lua_${name} PkgConfig::LUA_${name} test_catch
        PkgConfig::LUA_TEST_DW)
    add_test(NAME lua_cfi COMMAND test_lua_cfi)
    set_tests_properties(lua_cfi PROPERTIES LABELS lua TIMEOUT 120)
else()
    message(STATUS "hakmem: libdw not found, the test of unwind tables is left out (Debian package: libdw-dev)")
endif()
