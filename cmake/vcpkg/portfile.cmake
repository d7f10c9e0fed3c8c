# The core, from the tree in which this port lies. Features of other parts need what vcpkg does not build.
get_filename_component(source "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

set(options)
foreach(part TESTS LUA PYTHON WASM PRELOAD REPORT BENCH)
    list(APPEND options -DHAKMEM_BUILD_${part}=OFF)
endforeach()
# hakmem.dll is there beside the archive in all triplets, as libhakmem.so is.
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
vcpkg_cmake_configure(SOURCE_PATH "${source}" OPTIONS ${options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hakmem)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
