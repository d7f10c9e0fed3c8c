# Others' code that this build compiles as its own project does.

# Forgets, in the current folder, what differs between the build trees: the flags of the build type, of sanitizers, and
# of warnings. So the objects are the same in each tree, and ccache compiles them for one of them. ccache takes paths in
# the build tree as relative ones.
macro(hakmem_forget_flags)
    foreach(language C CXX)
        foreach(type DEBUG RELEASE RELWITHDEBINFO MINSIZEREL)
            set(CMAKE_${language}_FLAGS_${type} "")
        endforeach()
        if(HAKMEM_CCACHE AND HAKMEM_CCACHE IN_LIST CMAKE_${language}_COMPILER_LAUNCHER)
            set(CMAKE_${language}_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_BINARY_DIR}" "${HAKMEM_CCACHE}")
        endif()
    endforeach()
    set_directory_properties(PROPERTIES COMPILE_OPTIONS "" COMPILE_DEFINITIONS "")
endmacro()
