# The core's tests in C++ over the files of macOS and Windows, which run here over what these systems do: on pages of
# 16 KiB without mremap (support/kernel.c), and by steps of 64 KiB (support/windows). tests/CMakeLists.txt includes this
# file, and has the list of the tests.

# These programs bring a table of their own for each space, so that the system's table makes no difference to them. If
# one takes the system's all the same, it stops (support/own_table.c), and has to leave this list.
set(own_table extents magazine alloc inline sized sweep growth label packed_label packed_room ticks big recur
    second_free owners shared_label heaps transfer steal profile profile_counted profile_shared profile_threads
    profile_told profile_verdicts profile_windows canary placement tenants token)
add_library(own_table OBJECT support/own_table.c)
target_link_libraries(own_table PRIVATE hakmem_static)
foreach(name IN LISTS own_table)
    target_link_libraries(test_${name} PRIVATE own_table)
    target_link_options(test_${name} PRIVATE LINKER:--wrap=hak_os_init)
endforeach()
if(NOT HAKMEM_TEST_LONG OR NOT HAKMEM_TEST_LATER)
    return()
endif()

function(hakmem_add_core_tests_over_systems)
    foreach(system darwin windows)
        set(source ${PROJECT_SOURCE_DIR}/core/src/base/os_${system}.c)
        set(folder ${CMAKE_CURRENT_SOURCE_DIR}/support)
        set(kernel_of_darwin ${folder}/kernel.c)
        set(kernel_of_windows ${folder}/windows/windows.c)
        add_library(os_${system}_here OBJECT ${source} ${kernel_of_${system}})
        string(TOUPPER ${system} upper)
        target_compile_definitions(os_${system}_here PRIVATE HK_${upper}=1)
        target_include_directories(os_${system}_here PRIVATE ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR}/core/src
            ${folder}/${system})
    endforeach()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/core/src/base/os_darwin.c PROPERTIES
        COMPILE_OPTIONS "-include;${CMAKE_CURRENT_SOURCE_DIR}/support/kernel.h")

    # Cases that state what Linux alone promises. "reserve" is about spaces that grow where nobody else maps anything, and
    # about limits of Linux; what it states of other spaces stays.
    set(linux_reserve "~a default space maps*" "~a chunk is opened*" "~a reserve that is asked*" "~holes *" "~a limit *"
        "~mlockall *" "~somebody else's*")
    # Resident pages of 4 KiB.
    set(linux_trim "~trim gives back bitmaps*")
    # Guards need pages of 4 KiB: a context that asks for them is refused.
    set(linux_darwin_guard_contexts "~a space of its own*")
    # Its table has the pages of mmap, which Windows would not commit.
    set(linux_windows_reserve "~space: extents of any size*")

    # The first of them run in scripts/test all. The others, and those of the list above, it does not even link. What is no
    # part of the list of the tests cannot run so: mask and purge take no table, and interleavings has steps in each file of
    # the core.
    set(first contract space extents alloc realloc guard label limit trim big check shared heaps)
    set(others ${core_tests})
    list(REMOVE_ITEM others ${first} ${own_table})
    add_custom_target(core_tests_over_systems)
    add_test(NAME core_systems_built COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target core_tests_over_systems)
    set_tests_properties(core_systems_built PROPERTIES LABELS core TIMEOUT 1200 FIXTURES_SETUP core_systems_built
        RESOURCE_LOCK build)
    hakmem_leave_to_long(core_systems_built)
    foreach(system darwin windows)
        foreach(name IN LISTS first others)
            set(program ${system}_${name})
            add_executable(${program} $<TARGET_OBJECTS:test_${name}> $<TARGET_OBJECTS:test_support>)
            set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
            target_link_libraries(${program} PRIVATE test_catch os_${system}_here hakmem_static Threads::Threads)
            # What the program wraps, but for the table of the system.
            get_target_property(options test_${name} LINK_OPTIONS)
            if(options AND NOT name IN_LIST own_table)
                target_link_options(${program} PRIVATE ${options})
            endif()
            add_test(NAME core_${program} COMMAND ${program} ${linux_${name}} ${linux_${program}})
            set_tests_properties(core_${program} PROPERTIES
                LABELS core TIMEOUT 240 ENVIRONMENT "KERNEL_PAGE=16384;KERNEL_PLAIN=1;TEST_SYSTEM=${system}")
            if(name IN_LIST others)
                set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
                add_dependencies(core_tests_over_systems ${program})
                set_tests_properties(core_${program} PROPERTIES TIMEOUT 1200 FIXTURES_REQUIRED core_systems_built)
                hakmem_leave_to_long(core_${program})
            endif()
        endforeach()
    endforeach()
endfunction()
hakmem_add_core_tests_over_systems()

# What a reservation below a bound costs, with each of the two ways that os_windows.c has.
add_executable(windows_bound ${PROJECT_SOURCE_DIR}/tests/windows/bound.c support/windows/windows.c)
target_compile_definitions(windows_bound PRIVATE HK_WINDOWS=1)
target_include_directories(windows_bound PRIVATE ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR}/core/src support/windows)
target_link_libraries(windows_bound PRIVATE Threads::Threads)
add_test(NAME core_windows_bound COMMAND windows_bound)
add_test(NAME core_windows_bound_old COMMAND windows_bound old)
set_tests_properties(core_windows_bound core_windows_bound_old PROPERTIES LABELS core TIMEOUT 60)
