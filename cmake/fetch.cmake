# cmake -DHAKMEM_PACKAGES=FOLDER -DOUT=FILE -P cmake/fetch.cmake NAME: fetches the sources of a program that only tests of
# other systems and scripts/release-other build, and writes to FILE where they are.
cmake_minimum_required(VERSION 3.22)
set(PROJECT_BINARY_DIR "")
set(PROJECT_SOURCE_DIR "")
include(${CMAKE_CURRENT_LIST_DIR}/Packages.cmake)

math(EXPR last "${CMAKE_ARGC} - 1")
set(wanted "${CMAKE_ARGV${last}}")
if(wanted STREQUAL "cpython-source")
    hakmem_fetch_debian_source(python3.11 3.11.2 python3.11_3.11.2.orig.tar.gz
        2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849 place)
elseif(wanted STREQUAL "jansson")
    hakmem_fetch_debian_source(jansson 2.14 jansson_2.14.orig.tar.gz
        c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b place)
elseif(wanted STREQUAL "lupa")
    hakmem_fetch_lupa(place)
else()
    message(FATAL_ERROR "fetch: '${wanted}' is not known; there are cpython-source, jansson and lupa")
endif()
if(NOT place)
    message(FATAL_ERROR "fetch: ${wanted} is not to be had")
endif()
# The archive has one folder.
file(GLOB folders "${place}/*")
foreach(folder IN LISTS folders)
    if(EXISTS "${folder}/configure" OR EXISTS "${folder}/CMakeLists.txt" OR EXISTS "${folder}/setup.py")
        file(WRITE "${OUT}" "${folder}")
        return()
    endif()
endforeach()
message(FATAL_ERROR "fetch: no sources in ${place}")
