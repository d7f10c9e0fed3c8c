# Third-party packages by the ordinary clients of their registries, with pinned hashes. They land in
# build/packages, which all build trees share. Each function sets <out> in the caller's scope: the folder of
# the unpacked package, or NOTFOUND after one message that says what is missing.

set(HAKMEM_PACKAGES "${PROJECT_SOURCE_DIR}/build/packages")

# Builds of several trees may be configured at once.
macro(hakmem_packages_lock)
    file(MAKE_DIRECTORY "${HAKMEM_PACKAGES}")
    file(LOCK "${HAKMEM_PACKAGES}/lock" GUARD FUNCTION TIMEOUT 600)
endmacro()

macro(hakmem_package_missing why)
    message(STATUS "hakmem: ${name} ${version} is left out: ${why}")
    set(${out} NOTFOUND PARENT_SCOPE)
endmacro()

# Runs a client in a fresh folder; a failure is a message and NOTFOUND.
macro(hakmem_package_fetch folder)
    file(REMOVE_RECURSE "${folder}")
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${folder}" RESULT_VARIABLE status
                    OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 300)
    if(NOT status EQUAL 0)
        string(STRIP "${log}" log)
        string(REGEX REPLACE ".*\n" "" log "${log}")
        hakmem_package_missing("${ARGV1} failed: ${log}")
        return()
    endif()
endmacro()

# A Rust package, source only. cargo fetches its dependencies too; only the package itself is kept.
function(hakmem_fetch_crate name version sha256 out)
    set(place "${HAKMEM_PACKAGES}/${name}-${version}")
    hakmem_packages_lock()
    if(NOT EXISTS "${place}")
        find_program(HAKMEM_CARGO cargo)
        mark_as_advanced(HAKMEM_CARGO)
        if(NOT HAKMEM_CARGO)
            hakmem_package_missing("no cargo (scripts/setup installs it)")
            return()
        endif()
        set(work "${HAKMEM_PACKAGES}/fetch-${name}")
        file(REMOVE_RECURSE "${work}")
        file(WRITE "${work}/stub/src/lib.rs" "")
        file(WRITE "${work}/stub/Cargo.toml"
             "[package]\nname = \"stub\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[dependencies]\n"
             "${name} = { version = \"=${version}\", default-features = false }\n")
        hakmem_package_fetch("${work}/run" "${HAKMEM_CARGO}" vendor --quiet --versioned-dirs
                             --manifest-path "${work}/stub/Cargo.toml" "${work}/vendor")
        file(READ "${work}/vendor/${name}-${version}/.cargo-checksum.json" checksum)
        if(NOT checksum MATCHES "\"package\":\"${sha256}\"")
            hakmem_package_missing("its hash is not the pinned one")
            return()
        endif()
        file(RENAME "${work}/vendor/${name}-${version}" "${place}")
        file(REMOVE_RECURSE "${work}")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endfunction()

# One archive, already in `folder`, checked and unpacked to `place`.
macro(hakmem_package_unpack folder place)
    file(GLOB archives "${folder}/*")
    file(SHA256 "${archives}" found)
    if(NOT found STREQUAL sha256)
        hakmem_package_missing("its hash is not the pinned one")
        return()
    endif()
    file(ARCHIVE_EXTRACT INPUT "${archives}" DESTINATION "${folder}/unpacked")
    file(RENAME "${folder}/unpacked" "${place}")
    file(REMOVE_RECURSE "${folder}")
endmacro()

# A Python wheel of this machine's platform.
function(hakmem_fetch_wheel name version sha256 out)
    set(place "${HAKMEM_PACKAGES}/${name}-${version}")
    hakmem_packages_lock()
    if(NOT EXISTS "${place}")
        find_program(HAKMEM_PYTHON python3)
        mark_as_advanced(HAKMEM_PYTHON)
        if(NOT HAKMEM_PYTHON)
            hakmem_package_missing("no python3 (scripts/setup installs it)")
            return()
        endif()
        set(folder "${HAKMEM_PACKAGES}/fetch-${name}")
        hakmem_package_fetch("${folder}" "${HAKMEM_PYTHON}" -m pip download --quiet --no-deps
                             --only-binary=:all: "${name}==${version}" -d .)
        hakmem_package_unpack("${folder}" "${place}")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endfunction()

# A package of npm; its files are below <out>/package.
function(hakmem_fetch_npm name version sha256 out)
    set(place "${HAKMEM_PACKAGES}/${name}-${version}")
    hakmem_packages_lock()
    if(NOT EXISTS "${place}")
        find_program(HAKMEM_NPM npm)
        mark_as_advanced(HAKMEM_NPM)
        if(NOT HAKMEM_NPM)
            hakmem_package_missing("no npm (scripts/setup installs it)")
            return()
        endif()
        set(folder "${HAKMEM_PACKAGES}/fetch-${name}")
        hakmem_package_fetch("${folder}" "${HAKMEM_NPM}" pack --loglevel=error "${name}@${version}")
        hakmem_package_unpack("${folder}" "${place}")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endfunction()
