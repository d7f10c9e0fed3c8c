# Labels per runtime.

if(NOT TARGET test_catch)
    return()
endif()

foreach(name ${lua_tested})
    set(test test_lua_label_${name})
    add_executable(${test} label/kinds.cpp label/real.cpp label/crowd.c)
    target_include_directories(${test} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/bindings/lua/src
        ${PROJECT_SOURCE_DIR}/bindings/callsite)
    target_compile_definitions(${test} PRIVATE PROGRAMS="${CMAKE_CURRENT_SOURCE_DIR}/programs/")
    if(name STREQUAL luajit)
        target_compile_definitions(${test} PRIVATE HKL_LUAJIT)
    endif()
    target_link_libraries(${test} PRIVATE hakmem_lua_${name} PkgConfig::LUA_${name} test_catch test_support
        Threads::Threads)
    add_test(NAME lua_label_${name} COMMAND ${test})
    set_tests_properties(lua_label_${name} PROPERTIES LABELS lua TIMEOUT 300)
    hakmem_build_with_runtime(${name} ${test} lua_label_${name})
endforeach()
