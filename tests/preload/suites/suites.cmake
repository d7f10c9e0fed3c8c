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
        target_compile_options(${program} PRIVATE -w -fno-builtin -fsized-deallocation)
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
