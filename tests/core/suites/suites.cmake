# Tests that others wrote for their allocators, on the core. Their sources are fetched, none is kept here.

include(${PROJECT_SOURCE_DIR}/cmake/Packages.cmake)
# mimalloc's tests of its interface and of threads, by the functions of suites/mimalloc/mimalloc.h.
hakmem_fetch_debian_source(mimalloc 2.0.9+ds mimalloc_2.0.9+ds.orig.tar.xz
    cbc9d207ff105ad1f0cb739c378076143a6452b8d0624309cea0abfb040e972b mimalloc)
if(mimalloc)
    file(GLOB source ${mimalloc}/mimalloc-*/test)
    foreach(test api stress)
        add_executable(suite_mimalloc_${test} ${source}/test-${test}.c)
        target_include_directories(suite_mimalloc_${test} SYSTEM PRIVATE
            ${CMAKE_CURRENT_SOURCE_DIR}/core/suites/mimalloc)
        target_compile_options(suite_mimalloc_${test} PRIVATE -w -fno-builtin)
        target_link_libraries(suite_mimalloc_${test} PRIVATE hakmem_static Threads::Threads)
    endforeach()
    # Of its 34 checks the one of an alignment at an offset fails, which hakmem does not have.
    add_test(NAME core_mimalloc_api COMMAND suite_mimalloc_api)
    set_tests_properties(core_mimalloc_api PROPERTIES LABELS core TIMEOUT 120 PASS_REGULAR_EXPRESSION
        "FAILED: malloc-aligned-at2.*succeeded: 33\nfailed   : 1\n" FAIL_REGULAR_EXPRESSION "live at the end")
    add_test(NAME core_mimalloc_stress COMMAND suite_mimalloc_stress 4 20 5)
    set_tests_properties(core_mimalloc_stress PROPERTIES LABELS core TIMEOUT 240)
endif()
