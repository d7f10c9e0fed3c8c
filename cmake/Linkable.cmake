# pkg-config may be that of the machine that builds, whose libraries are not those of the target. In a cross build, what it
# has found counts only if a program links with it.
function(hakmem_check_linkable prefix package)
    if(NOT CMAKE_CROSSCOMPILING OR NOT ${prefix}_FOUND)
        return()
    endif()
    set(source ${PROJECT_BINARY_DIR}/CMakeFiles/hakmem_linkable.c)
    file(WRITE ${source} "int main(void)\n{\n    return 0;\n}\n")
    try_compile(${prefix}_LINKS ${PROJECT_BINARY_DIR}/CMakeFiles/linkable ${source}
        LINK_LIBRARIES PkgConfig::${prefix})
    if(NOT ${prefix}_LINKS)
        message(STATUS "hakmem: the ${package} that pkg-config finds is not for the target "
            "(PKG_CONFIG_LIBDIR says where that of the target is)")
        set(${prefix}_FOUND FALSE PARENT_SCOPE)
    endif()
endfunction()
