# Headers, libraries, the CMake package and the pkg-config file. Bindings install their own files.

include(CMakePackageConfigHelpers)

install(DIRECTORY core/include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS hakmem_static hakmem_shared EXPORT hakmemTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
install(EXPORT hakmemTargets NAMESPACE hakmem:: DESTINATION ${package_dir})
configure_package_config_file(cmake/hakmemConfig.cmake.in ${PROJECT_BINARY_DIR}/hakmemConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hakmemConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hakmemConfig.cmake ${PROJECT_BINARY_DIR}/hakmemConfigVersion.cmake
    DESTINATION ${package_dir})

# The file finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/hakmem.pc.in ${PROJECT_BINARY_DIR}/hakmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hakmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
