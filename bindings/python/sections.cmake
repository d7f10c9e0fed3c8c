# hook_sources: the sources of the hook, section by section in the order of the link. base/cold.h says what the
# sections are good for. Each folder tells in its sources.cmake which section a file is in:
#
#   every    what every process runs; optimized for size
#   fast     part of it: what runs with each block; optimized for speed
#   native   hooks with native labels
#   lines    hooks with lines
#   cold     what runs when a process starts, for labels of places that are new, for reports
set(sections fast every native lines cold)

function(hakmem_hook_sources section)
    if(NOT section IN_LIST sections)
        message(FATAL_ERROR "hakmem: the Python hook has no section '${section}'")
    endif()
    foreach(file IN LISTS ARGN)
        get_filename_component(path ${file} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_LIST_DIR})
        if(NOT EXISTS ${path})
            message(FATAL_ERROR "hakmem: ${path}, in section '${section}' of the Python hook, does not exist")
        endif()
        list(APPEND hook_${section} ${path})
    endforeach()
    set(hook_${section} ${hook_${section}} PARENT_SCOPE)
endfunction()

foreach(section native lines cold)
    set(hook_${section} ${CMAKE_CURRENT_BINARY_DIR}/boundary_${section}.c)
    file(CONFIGURE OUTPUT ${hook_${section}} CONTENT "#include \"base/cold.h\"\n\nHKP_BOUNDARY(${section})\n")
endforeach()

set(folders base heap native lines profile paths hook)
list(TRANSFORM folders APPEND /*.c OUTPUT_VARIABLE patterns)
file(GLOB own_sources CONFIGURE_DEPENDS ${patterns})
foreach(folder ${folders})
    include(${folder}/sources.cmake)
endforeach()
hakmem_hook_sources(every ../common/process.c)
hakmem_hook_sources(cold
    ../callsite/cfi.c ../callsite/image.c ../callsite/names.c ../callsite/readable.c ../callsite/symbols.c
    ../callsite/walk.c ../common/file.c
    ../common/costs.c ../common/memory.c
    ../common/helper.c ../common/json.c ../common/learn.c ../common/live.c ../common/mapped.c ../common/otel.c ../common/parts.c ../common/pipe.c ../common/policy.c
    ../common/history_json.c ../common/profile_json.c ../common/report.c ../common/report_json.c ../common/size.c ../common/smaps.c ../common/stream.c)

# The core is compiled again, together with the hooks: its fast paths become part of them.
set(core ${PROJECT_SOURCE_DIR}/core/src)
file(GLOB core_sources CONFIGURE_DEPENDS ${core}/*/*.c)
set_source_files_properties(${core_sources} PROPERTIES INCLUDE_DIRECTORIES ${core})
hakmem_hook_sources(fast ${core}/api/alloc.c ${core}/api/ladder.c ${core}/api/realloc.c ${core}/heap/magazine.c ${core}/heap/slab.c)
hakmem_hook_sources(cold ${core}/api/check.c ${core}/api/holes.c ${core}/api/trim.c ${core}/heap/holes.c)
# Constants that a new heap reads once: not among those of every process, nor with all that is cold.
hakmem_hook_sources(lines ${core}/heap/bins.c)
list(REMOVE_ITEM core_sources ${hook_fast} ${hook_native} ${hook_lines} ${hook_cold})
hakmem_hook_sources(every ${core_sources})

set(hook_sources "")
foreach(section ${sections})
    list(APPEND hook_sources ${hook_${section}})
endforeach()
list(REMOVE_ITEM own_sources ${hook_sources})
if(own_sources)
    message(FATAL_ERROR "hakmem: in no section of the Python hook, see sections.cmake: ${own_sources}")
endif()
