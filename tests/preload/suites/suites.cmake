# Tests that others wrote for their allocators, under the shim. Their sources are fetched, none is kept here.

# snmalloc's, by the functions of libc. Not func/malloc: it wants blocks aligned to their size.
if(CMAKE_CXX_COMPILER)
    hakmem_fetch_crate(snmalloc-sys 0.7.6 f09c93c55f9a2b8dab75738a83c771231c5f408af65b8657433fe5bc93cc76cb snmalloc)
endif()
if(snmalloc)
    set(source ${snmalloc}/upstream/src)
    foreach(test func/memory func/first_operation)
        get_filename_component(name ${test} NAME)
        set(program suite_snmalloc_${name})
        add_executable(${program} ${source}/test/${test}/${name}.cc suites/snmalloc_testlib.cpp)
        target_compile_features(${program} PRIVATE cxx_std_20)
        target_include_directories(${program} SYSTEM PRIVATE ${source})
        target_compile_definitions(${program} PRIVATE SNMALLOC_USE_WAIT_ON_ADDRESS=1)
        set_source_files_properties(${source}/test/${test}/${name}.cc PROPERTIES COMPILE_OPTIONS -w)
        target_compile_options(${program} PRIVATE -fno-builtin -fsized-deallocation)
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
            target_compile_options(${program} PRIVATE -mcx16)
        endif()
        target_link_libraries(${program} PRIVATE Threads::Threads atomic)
        add_test(NAME preload_snmalloc_${name} COMMAND ${program})
        set_tests_properties(preload_snmalloc_${name} PROPERTIES LABELS preload TIMEOUT 300
            ENVIRONMENT "LD_PRELOAD=${shim};HAKMEM=check=abort")
    endforeach()
    # Without checks, as programs run; and every hundredth block before a guard page.
    add_test(NAME preload_snmalloc_memory_plain COMMAND suite_snmalloc_memory)
    add_test(NAME preload_snmalloc_memory_guard COMMAND suite_snmalloc_memory)
    set_tests_properties(preload_snmalloc_memory_plain PROPERTIES LABELS preload TIMEOUT 300
        ENVIRONMENT "LD_PRELOAD=${shim}")
    set_tests_properties(preload_snmalloc_memory_guard PROPERTIES LABELS preload TIMEOUT 300
        ENVIRONMENT "LD_PRELOAD=${shim};HAKMEM=guard=100")
endif()

include(${PROJECT_SOURCE_DIR}/cmake/Packages.cmake)
# A program of somebody else's sources, below the shim: their warnings are theirs.
function(hakmem_add_suite program)
    add_executable(${program} ${ARGN})
    target_compile_options(${program} PRIVATE -w -fno-builtin)
    target_link_libraries(${program} PRIVATE Threads::Threads)
endfunction()

# mimalloc's stress, by malloc: threads, scale, rounds.
if(mimalloc)
    file(GLOB source ${mimalloc}/mimalloc-*/test/test-stress.c)
    hakmem_add_suite(suite_malloc_stress ${source})
    target_compile_definitions(suite_malloc_stress PRIVATE USE_STD_MALLOC NDEBUG mi_collect=malloc_trim)
    target_compile_options(suite_malloc_stress PRIVATE -include malloc.h)
    add_test(NAME preload_mimalloc_stress COMMAND suite_malloc_stress 4 20 5)
    set_tests_properties(preload_mimalloc_stress PROPERTIES LABELS preload TIMEOUT 240
        ENVIRONMENT "LD_PRELOAD=${shim};HAKMEM=check=abort")
endif()

# jemalloc's tests of standard functions; its others call its own. Clang 14 crashes while it compiles one of them.
hakmem_fetch_debian_source(jemalloc 5.3.0 jemalloc_5.3.0.orig.tar.bz2
    2db82d1e7119df3e71b7640219b6dfe84789bc0537983c3b7ac4f7189aecfeaa jemalloc jemalloc-*/test/integration/*)
if(jemalloc AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    foreach(test malloc aligned_alloc posix_memalign)
        hakmem_add_suite(suite_jemalloc_${test} ${jemalloc}/jemalloc-5.3.0/test/integration/${test}.c)
        target_include_directories(suite_jemalloc_${test} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/suites/jemalloc)
        add_test(NAME preload_jemalloc_${test} COMMAND suite_jemalloc_${test})
        set_tests_properties(preload_jemalloc_${test} PROPERTIES LABELS preload TIMEOUT 240
            ENVIRONMENT "LD_PRELOAD=${shim}")
    endforeach()
endif()

# suite_NAME: the folder that test_NAME.py, which runs the suite, is called with.
set(suite_glibc)
set(suite_redis)
set(suite_sqlite)

# glibc's tests of malloc, with as much of their support library as they use. Those that test_glibc.py leaves out are
# not built.
hakmem_fetch_debian_source(glibc 2.36 glibc_2.36.orig.tar.xz
    a543c02070d46ccaf866957efd13f10c924daa74c86a90a0254db09a92a708ee glibc glibc-2.36/malloc/* glibc-2.36/support/*
    glibc-2.36/test-skeleton.c glibc-2.36/include/libc-diag.h glibc-2.36/include/array_length.h
    glibc-2.36/sysdeps/generic/malloc-*.h)
if(glibc AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(source ${glibc}/glibc-2.36)
    set(support)
    foreach(name check oom_error support_record_failure support_shared_allocate support_test_compare_failure
            support_test_main support_test_verify_impl temp_file write_message xasprintf xcalloc xchdir xfopen xfork
            xmalloc xmmap xmunmap xopen xpthread_barrier_destroy xpthread_barrier_init xpthread_barrier_wait
            xpthread_barrierattr_destroy xpthread_barrierattr_init xpthread_barrierattr_setpshared
            xpthread_check_return xpthread_create xpthread_join xpthread_kill xsignal xsysconf)
        list(APPEND support ${source}/support/${name}.c)
    endforeach()
    add_library(suite_glibc_support STATIC ${support} suites/glibc_support.c)
    set_source_files_properties(${support} PROPERTIES COMPILE_OPTIONS -w)
    target_compile_options(suite_glibc_support PRIVATE -include limits.h)
    target_compile_definitions(suite_glibc_support PRIVATE TIMEOUTFACTOR=4)
    # Only what was unpacked is there: the system's own headers are not hidden.
    target_include_directories(suite_glibc_support SYSTEM PUBLIC ${source} ${source}/support ${source}/include
        ${source}/sysdeps/generic)
    target_compile_definitions(suite_glibc_support PUBLIC _GNU_SOURCE)
    set_target_properties(suite_glibc_support PROPERTIES C_EXTENSIONS ON)
    foreach(test mallocbug tst-malloc tst-valloc tst-calloc tst-obstack tst-malloc-check tst-mallocfork tst-mallocfork2
            tst-mallocfork3 tst-trim1 tst-realloc tst-reallocarray tst-posix_memalign tst-pvalloc tst-pvalloc-fortify
            tst-memalign tst-malloc-thread-exit tst-malloc-thread-fail tst-malloc-fork-deadlock tst-free-errno
            tst-malloc-too-large tst-tcfree1 tst-tcfree2 tst-tcfree3 tst-mallocalign1 tst-interpose-nothread
            tst-interpose-thread)
        string(REPLACE "tst-interpose-" "tst-interpose-aux-" beside ${test})
        if(beside STREQUAL ${test})
            set(beside)
        else()
            set(beside ${source}/malloc/${beside}.c)
        endif()
        hakmem_add_suite(suite_glibc_${test} ${source}/malloc/${test}.c ${beside})
        target_link_libraries(suite_glibc_${test} PRIVATE suite_glibc_support)
        set_target_properties(suite_glibc_${test} PROPERTIES C_EXTENSIONS ON OUTPUT_NAME ${test}
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/glibc)
    endforeach()
    set(suite_glibc ${CMAKE_CURRENT_BINARY_DIR}/glibc)
endif()

# redis's tests, of Debian's server.
hakmem_fetch_debian_source(redis 7.0.15 redis_7.0.15.orig.tar.gz
    4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982 redis redis-7.0.15/tests/*)
if(redis)
    set(suite_redis ${redis}/redis-7.0.15)
endif()

# SQLite's tests: its test program, by its own makefile. Without optimization it is there in a few seconds; as glibc's
# not in the tree of clang, which runs the tests of the core only.
find_package(TCL QUIET)
find_program(HAKMEM_MAKE make)
mark_as_advanced(HAKMEM_MAKE)
if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
    return()
endif()
if(TCL_INCLUDE_PATH AND TCL_LIBRARY AND TCL_TCLSH AND HAKMEM_MAKE)
    set(source sqlite3-3.40.1)
    hakmem_fetch_debian_source(sqlite3 3.40.1 sqlite3_3.40.1.orig.tar.xz
        aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655 sqlite ${source}/src/* ${source}/tool/*
        ${source}/ext/* ${source}/test/*.test ${source}/test/*.tcl ${source}/test/*.[ch] ${source}/main.mk
        ${source}/manifest* ${source}/VERSION)
else()
    message(STATUS "hakmem: SQLite's tests are left out: no Tcl or no make (Debian packages: tcl tcl-dev make)")
endif()
if(sqlite)
    set(source ${sqlite}/${source})
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/sqlite)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${folder}/testfixture WORKING_DIRECTORY ${folder} VERBATIM
        COMMAND ${HAKMEM_MAKE} -s -f ${source}/main.mk TOP=${source} BCC=${CMAKE_C_COMPILER} "TCC=${CMAKE_C_COMPILER} -w"
            "OPTS=-DSQLITE_THREADSAFE=1 -DHAVE_USLEEP=1" "TCL_FLAGS=-I${TCL_INCLUDE_PATH}"
            "LIBTCL=${TCL_LIBRARY} -lm -lz" "THREADLIB=-lpthread -ldl" amalgamation-testfixture
        COMMENT "SQLite's test program")
    add_custom_target(suite_sqlite ALL DEPENDS ${folder}/testfixture)
    set(suite_sqlite ${source}/test)
    set(testfixture ${folder}/testfixture)
endif()
