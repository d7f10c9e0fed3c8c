# Headers, libraries, the CMake package, the pkg-config files and the documents. Bindings install their own files.
# Components: runtime (the shared libraries), development, lua (module and launchers), python (the hook and the
# package), preload, report (the command hakmem), documents.

include(CMakePackageConfigHelpers)

install(DIRECTORY core/include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h")
install(TARGETS hakmem_static hakmem_shared EXPORT hakmemTargets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
install(EXPORT hakmemTargets NAMESPACE hakmem:: DESTINATION ${package_dir} COMPONENT development)
if(NOT HAKMEM_WASM_DIR)
    set(HAKMEM_WASM_DIR not-installed)
endif()
set(HAKMEM_PYTHON_DIR ${CMAKE_INSTALL_LIBDIR}/hakmem/python)
configure_package_config_file(cmake/hakmemConfig.cmake.in ${PROJECT_BINARY_DIR}/hakmemConfig.cmake
    INSTALL_DESTINATION ${package_dir}
    PATH_VARS HAKMEM_WASM_DIR HAKMEM_PYTHON_DIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hakmemConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hakmemConfig.cmake ${PROJECT_BINARY_DIR}/hakmemConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT development)

# The file finds its prefix from where it lies, so that an installed tree can be moved; unless it lies at a place
# that was given as absolute.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
endif()
foreach(dir INCLUDEDIR LIBDIR)
    cmake_path(APPEND pc_${dir} "\${prefix}" "${CMAKE_INSTALL_${dir}}")
endforeach()
function(hakmem_pkgconfig pc_name pc_description pc_libs pc_requires)
    set(file ${PROJECT_BINARY_DIR}/${pc_name}.pc)
    configure_file(cmake/hakmem.pc.in ${file} @ONLY)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
hakmem_pkgconfig(hakmem "${PROJECT_DESCRIPTION}" -lhakmem "")
if(TARGET hakmem_report_static)
    hakmem_pkgconfig(hakmem-report "reports, labels by call site and memory for errors, for hosts of hakmem"
        "-lhakmem-report -pthread" hakmem)
endif()
# The bindings are static libraries, and take the core as one, which -lhakmem would not.
foreach(runtime IN LISTS HAKMEM_LUA_INSTALLED)
    string(REGEX REPLACE "^5(.)$" "lua5.\\1" name ${runtime})
    hakmem_pkgconfig(hakmem-${name} "hakmem for hosts of Lua" "-lhakmem_lua_${runtime} -l:libhakmem.a"
        ${LUA_${runtime}_MODULE_NAME})
endforeach()
if(TARGET hakmem_wasm)
    hakmem_pkgconfig(hakmem-wasm "hakmem for hosts of WebAssembly" "-lhakmem_wasm -l:libhakmem.a -pthread" "")
endif()

# A project around this one has given CMAKE_INSTALL_DOCDIR its own name. Links between the documents stay right.
set(documents ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)
    set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/hakmem)
endif()
foreach(file README.md CHANGELOG.md SECURITY.md LICENSE docs)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${file})
        install(DIRECTORY ${file} DESTINATION ${documents} COMPONENT documents)
    elseif(EXISTS ${PROJECT_SOURCE_DIR}/${file})
        install(FILES ${file} DESTINATION ${documents} COMPONENT documents)
    endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL)
    include(${CMAKE_CURRENT_LIST_DIR}/Debian.cmake)
endif()
