#!/usr/bin/env bash
# configure.sh case scratch-folder
# Configures hakmem, or a project around it, and looks at what is built and installed.
# Exit status 77: skipped, for the reason printed.
set -euo pipefail
case=$1 scratch=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/case.sh"
rm -rf "$scratch"
mkdir -p "$scratch/called-from"
cd "$scratch/called-from"

must_exist() {
    for path; do
        [[ -e $path ]] || fail "$path is missing"
    done
}
must_not_exist() {
    for path; do
        [[ ! -e $path ]] || fail "$path is there"
    done
}
# With HAKMEM_WERROR=ON the compiler gets the words that TREE gives it, and ccache has the objects.
configure() { # build tree, arguments for cmake
    "$CMAKE" -S "$SOURCE" -B "$1" -DCMAKE_C_COMPILER="$CC" "${@:2}" >"$1.log" 2>&1 || {
        cat "$1.log"
        fail "cmake fails"
    }
}
parts() { # ON or OFF for all that is not the core
    for part in TESTS LUA PYTHON WASM PRELOAD REPORT BENCH; do echo "-DHAKMEM_BUILD_$part=$1"; done
}
build_and_install() { # build tree, arguments for cmake --install
    "$CMAKE" --build "$1" >/dev/null
    "$CMAKE" --install "$@" >/dev/null
}
by_pkg_config() { # folder of hakmem.pc; the program is linked with the static library and run
    PKG_CONFIG_PATH=$1
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    $CC -static "$EXAMPLES/embed.c" $(pkg-config --static --cflags --libs hakmem) -o embed
    ./embed >/dev/null
}
linked_shared() { # program
    grep -q 'NEEDED.*libhakmem' <<<"$(readelf --dynamic "$1")"
}
# A project that has hakmem in its tree and links hakmem::hakmem.
inside() { # arguments for cmake
    "$CMAKE" -S "$here/inside" -B "$scratch/build" -DCMAKE_C_COMPILER="$CC" -DHAKMEM="$SOURCE" \
        -DEXAMPLES="$EXAMPLES" "$@" >/dev/null
    "$CMAKE" --build "$scratch/build" >/dev/null
    "$scratch/build/embed" >/dev/null
}
cross_linux() { # processor
    needs_program "$1-linux-gnu-gcc" "gcc-${1/_/-}-linux-gnu"
    needs_program "qemu-$1-static" qemu-user-static
    CC=$1-linux-gnu-gcc
}
cross_aarch64() { # writes toolchain.cmake
    needs_program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    needs_program qemu-aarch64-static qemu-user-static
    CC=aarch64-linux-gnu-gcc
    cat >toolchain.cmake <<'CMAKE'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
CMAKE
}
# Constraints of inline assembly hold without inlining, too; and warnings differ with what the optimizer knows.
unoptimized() { # level, what runs the program
    "$SOURCE/scripts/amalgamate" .
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror "$1" -I. "-I$SOURCE/core/include" \
        "$EXAMPLES/embed.c" hakmem.c ${ATOMIC:-} -o embed || fail "the core does not compile at $1"
    "${@:2}" ./embed >/dev/null || fail "embed at $1"
}
# Lua as an archive for the compiler CC, by the archiver AR, which pkg-config finds from then on.
lua_library() { # flags
    [[ -n ${LUA_SOURCE:-} ]] || skip "no sources of Lua (the Rust package lua-src)"
    mkdir lua pkgconfig
    find "$LUA_SOURCE" -name '*.c' -not -name lua.c -not -name luac.c -not -name ltests.c -not -name onelua.c -print0 |
        (cd lua && xargs -0 -n 8 -P 2 "$CC" "$@" -c)
    "${AR:-ar}" rcs lua/liblua5.4.a lua/*.o
    cat >pkgconfig/lua5.4.pc <<PC
Name: Lua
Description: Lua
Version: 5.4.7
Libs: -L$PWD/lua -llua5.4 -lm
Cflags: -I$LUA_SOURCE
PC
    export PKG_CONFIG_LIBDIR=$PWD/pkgconfig
}
# The launcher with that library, and a script that it runs.
lua_launcher() { # what runs the program, then -- and arguments for cmake
    local runner=()
    while [[ $1 != -- ]]; do runner+=("$1") && shift; done
    shift
    lua_library -O2 -DLUA_USE_POSIX -DLUA_USE_DLOPEN
    configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_LUA=ON -DHAKMEM_WERROR=ON "$@"
    "$CMAKE" --build "$scratch/build" --parallel 2 --target haklua5.4 >build.log || { cat build.log; fail "build"; }
    lua_script "${runner[@]}" "$scratch/build/bindings/lua/haklua5.4"
    lua_frames "${runner[@]}" "$scratch/build/bindings/lua/haklua5.4"
}
# What walks frames of machine code outside of Lua: labels by call site, a host's profile, the malloc shim. run_by: what runs
# the programs; with_variable: what it has before a variable for them, if anything.
hosts() { # arguments for cmake
    local shim=LD_PRELOAD=$scratch/build/bindings/preload/libhakmem-preload.so before=(${with_variable:+"$with_variable"})
    local flags=(-O2 -Wall -Wextra -Werror ${LINK:+"$LINK"})
    configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_REPORT=ON -DHAKMEM_BUILD_PRELOAD=ON -DHAKMEM_WERROR=ON "$@"
    "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_report_static hakmem_preload >build.log ||
        { cat build.log; fail "build"; }
    "$CC" "${flags[@]}" "-I$SOURCE/core/include" "-I$SOURCE/bindings/host/include" "$here/other_host.c" \
        "$scratch/build/bindings/host/libhakmem-report.a" "$scratch/build/core/libhakmem.a" -lpthread -o host
    "${run_by[@]}" ./host >host.json || fail "host: $?"
    python3 "$here/other_stacks.py" host.json helper_take page_make main || fail "frames of a host"
    "$CC" "${flags[@]}" "$here/other_malloc.c" -o malloc
    "${run_by[@]}" "${before[@]}" "$shim" "${before[@]}" "HAKMEM=profile=$PWD/malloc.json" ./malloc || fail "shim: $?"
    python3 "$here/other_stacks.py" malloc.json take_much keep_much main || fail "frames of the shim"
    "$CC" "${flags[@]}" "$here/other_threads.c" -lpthread -o threads
    "${run_by[@]}" "${before[@]}" "$shim" "${before[@]}" "HAKMEM=limit=256M,check=report,report=$PWD/threads.txt" ./threads ||
        { cat threads.txt; fail "threads: $?"; }
}
lua_frames() { # the same: what takes a walk over frames of machine code
    cat >frames.lua <<'LUA'
local keep = {}
local function fill(n)
    for i = 1, n do keep[i] = { a = i, b = i } end
end
local function outer() fill(1000) return #keep end
outer()
big = {} for i = 1, 50000 do big[i] = i end
local closures = {}
for i = 1, 1000 do
    closures[i] = function() return i end
end
LUA
    "$@" --hak-profile=lines.json,lines frames.lua || fail "profile by line"
    # Only stacks of sampled profiles have more than the innermost function.
    "$@" --hak-profile=stacks.json,1K frames.lua || fail "sampled profile"
    python3 "$here/lua_frames.py" lines.json stacks.json || fail "frames"
}
lua_script() { # the launcher, and before it what runs it
    cat >script.lua <<'LUA'
local t = {}
for i = 1, 1000 do t[i] = { tostring(i), function() return i end } end
print(#t)
LUA
    "$@" --hak-report --hak-limit=64M script.lua >out 2>report || { cat report; fail "status $?"; }
    [[ $(tr -d '\r' <out) == 1000 ]] || fail "the script prints $(cat out)"
    # The tables, closures and strings of the script, by their labels.
    for label in table closure string; do
        [[ $(awk -v l=$label '$1 == l { print $3 }' report) -ge 1000 ]] || { cat report; fail "label $label"; }
    done
}

case $case in
    libdir_relative)
        configure "$scratch/build" $(parts OFF) -DHAKMEM_WERROR=ON -DCMAKE_INSTALL_LIBDIR=lib64/deep
        build_and_install "$scratch/build" --prefix "$scratch/prefix"
        must_exist "$scratch"/prefix/lib64/deep/{libhakmem.a,libhakmem.so,cmake/hakmem/hakmemConfig.cmake}
        [[ -z $(ls) ]] || fail "$(pwd) got $(ls)"
        mv "$scratch/prefix" "$scratch/elsewhere"
        by_pkg_config "$scratch/elsewhere/lib64/deep/pkgconfig"
        ;;
    libdir_absolute)
        configure "$scratch/build" $(parts OFF) -DHAKMEM_WERROR=ON "-DCMAKE_INSTALL_LIBDIR=$scratch/far/lib" \
            "-DCMAKE_INSTALL_PREFIX=$scratch/prefix"
        build_and_install "$scratch/build"
        must_exist "$scratch"/far/lib/{libhakmem.a,libhakmem.so,cmake/hakmem/hakmemConfig.cmake}
        by_pkg_config "$scratch/far/lib/pkgconfig"
        [[ $(pkg-config --variable=includedir hakmem) == "$scratch/prefix/include" ]] || fail "includedir"
        "$CMAKE" -S "$here/find_package" -B consumer -DCMAKE_C_COMPILER="$CC" -DWANTED_VERSION="$VERSION" \
            -DEXAMPLES="$EXAMPLES" -Dhakmem_ROOT="$scratch/far" -DPARTS= >/dev/null
        "$CMAKE" --build consumer >/dev/null
        ;;
    source_untouched)
        # Permissions do not hold root back: a copy that says afterwards what was written to it.
        mkdir "$scratch/source" "$scratch/build"
        tar -C "$SOURCE" --exclude=./build --exclude=./.git --exclude=__pycache__ -c . | tar -C "$scratch/source" -x
        chmod -R a-w "$scratch/source"
        trap 'chmod -R u+w "$scratch/source"' EXIT
        listing() { (cd "$scratch/source" && find . -printf '%p %T@ %s\n' | sort); }
        listing >before
        # Packages that are there need neither the network nor a folder that can be written.
        ln -s "$PACKAGES" "$scratch/build/packages"
        SOURCE=$scratch/source
        configure "$scratch/build" $(parts ON) -DCMAKE_BUILD_TYPE=Debug
        "$CMAKE" --build "$scratch/build" --target hakmem_static hakmem_shared >/dev/null
        grep -qx "HAKMEM_PACKAGES:PATH=$scratch/build/packages" "$scratch/build/CMakeCache.txt" ||
            fail "packages go to $(grep HAKMEM_PACKAGES "$scratch/build/CMakeCache.txt")"
        listing | diff before - || fail "the source tree was written to"
        ;;
    without_cxx)
        unset CXX
        CXX=$scratch/no-such-compiler configure "$scratch/build" $(parts ON) -DHAKMEM_WERROR=ON \
            "-DHAKMEM_PACKAGES=$PACKAGES"
        grep -q 'no C++ compiler' "$scratch/build.log" || fail "cmake does not say that it found none"
        targets=(hakmem_static hakmem_shared)
        for target in hakmem_lua_54 hakmem_preload hakmem_pyhook hakmem_wasm; do
            ! grep -q "/$target.dir$" "$scratch/build/CMakeFiles/TargetDirectories.txt" || targets+=("$target")
        done
        "$CMAKE" --build "$scratch/build" --target "${targets[@]}" >/dev/null
        ;;
    inside_static)
        unset CMAKE_GENERATOR # as a stranger has it
        inside -DBUILD_SHARED_LIBS=OFF
        ! linked_shared "$scratch/build/embed" || fail "linked with the shared library"
        ;;
    inside_shared)
        inside -DBUILD_SHARED_LIBS=ON
        linked_shared "$scratch/build/embed" || fail "linked with the static library"
        ;;
    fetched)
        inside -DBUILD_SHARED_LIBS=ON -DFETCH=ON
        linked_shared "$scratch/build/embed" || fail "linked with the static library"
        # Its documents do not mix with those of the project around it.
        "$CMAKE" --install "$scratch/build" --prefix "$scratch/prefix" >/dev/null
        must_exist "$scratch"/prefix/share/doc/hakmem/{LICENSE,docs/guide/building.md}
        ;;
    destdir)
        DESTDIR=$scratch/root "$CMAKE" --install "$TREE" --prefix /opt/hakmem >/dev/null
        must_exist "$scratch"/root/opt/hakmem/{include/hakmem/hakmem.h,lib/libhakmem.a,share/doc/hakmem/LICENSE}
        [[ $(ls "$scratch/root") == opt ]] || fail "$(ls "$scratch/root") under DESTDIR"
        mv "$scratch/root/opt/hakmem" "$scratch/root/moved"
        by_pkg_config "$scratch/root/moved/lib/pkgconfig"
        ;;
    deb)
        needs_program dpkg-shlibdeps dpkg-dev
        needs_program file file
        cpack -G DEB --config "$TREE/CPackConfig.cmake" -B "$scratch" >"$scratch/log" || fail "$(tail "$scratch/log")"
        wanted="hakmem-doc libhakmem-dev libhakmem0.1"
        for part in $PARTS; do
            case $part in
                wasm | report) ;; # in libhakmem-dev
                command) wanted+=" hakmem-report" ;;
                *) wanted+=" hakmem-$part" ;;
            esac
        done
        found=$(cd "$scratch" && ls ./*.deb | sed 's,^\./,,; s/_.*//')
        diff <(tr ' ' '\n' <<<"$wanted" | sort) <(sort <<<"$found") || fail "other packages than expected"
        field() { dpkg-deb --field "$scratch/$1"_*.deb "$2"; }
        [[ $(field libhakmem-dev Depends) == "libhakmem0.1 (= $VERSION)" ]] || fail "libhakmem-dev: $(field libhakmem-dev Depends)"
        [[ $(field libhakmem0.1 Depends) == libc6* ]] || fail "libhakmem0.1: $(field libhakmem0.1 Depends)"
        # Two packages with one file cannot both be installed.
        twice=$(for p in "$scratch"/*.deb; do dpkg-deb --fsys-tarfile "$p" | tar t; done | grep -v '/$' | sort | uniq -d)
        [[ -z $twice ]] || fail "in two packages: $twice"
        for p in "$scratch"/*.deb; do
            dpkg-deb -x "$p" "$scratch/root"
        done
        must_exist "$scratch"/root/usr/{include/hakmem/hakmem.h,lib/libhakmem.so.0.1,share/doc/hakmem/LICENSE}
        by_pkg_config "$scratch/root/usr/lib/pkgconfig"
        ;;
    components)
        for component in runtime development lua python preload report documents; do
            "$CMAKE" --install "$TREE" --prefix "$scratch/$component" --component "$component" >/dev/null
        done
        runtime=$(cd "$scratch/runtime" && find . -type f)
        wanted=./lib/libhakmem.so.$VERSION
        [[ $PARTS != *\ report* ]] || wanted=./lib/libhakmem-report.so.$VERSION$'\n'$wanted
        [[ $(sort <<<"$runtime") == "$wanted" ]] || fail "runtime is $runtime"
        must_exist "$scratch"/development/{include/hakmem/hakmem.h,lib/libhakmem.a,lib/pkgconfig/hakmem.pc}
        must_not_exist "$scratch"/development/{bin,share/doc,lib/libhakmem-preload.so}
        must_exist "$scratch"/documents/share/doc/hakmem/{README.md,CHANGELOG.md,SECURITY.md,LICENSE,docs/guide/building.md}
        python3 "$SOURCE/tests/documents/test_links.py" "$scratch/documents/share/doc/hakmem" \
            Documents.test_every_link_leads_somewhere
        # Together they are the whole.
        "$CMAKE" --install "$TREE" --prefix "$scratch/whole" >/dev/null
        mkdir "$scratch/sum"
        for component in runtime development lua python preload report documents; do
            [[ ! -d $scratch/$component ]] || cp -a "$scratch/$component/." "$scratch/sum"
        done
        diff <(cd "$scratch/whole" && find . | sort) <(cd "$scratch/sum" && find . | sort) ||
            fail "the components are not the whole"
        ;;
    too_narrow)
        # As a compiler for 32 bits sees the header; its libc need not be there.
        echo '#include <hakmem/hakmem.h>' >narrow.c
        ! $CC -m32 -ffreestanding -fsyntax-only "-I$SOURCE/core/include" narrow.c 2>errors ||
            fail "hakmem.h compiles for 32 bits"
        grep -q 'hakmem needs a 64-bit target' errors || { cat errors; fail "the compiler's message"; }
        [[ $(grep -c ' error: ' errors) -eq 1 ]] || { cat errors; fail "more than one error"; }
        ;;
    musl)
        needs_program musl-gcc "musl-tools"
        CC=musl-gcc configure "$scratch/build" $(parts OFF) "-DHAKMEM_WERROR=ON" -DCMAKE_C_FLAGS=-Werror
        build_and_install "$scratch/build" --prefix "$scratch/prefix"
        musl-gcc -static -O1 -Werror "$here/../core/smoke.c" "-I$scratch/prefix/include" \
            "$scratch/prefix/lib/libhakmem.a" -o smoke
        ./smoke || fail "$? failures"
        ;;
    musl_lua)
        needs_program musl-gcc "musl-tools"
        CC=musl-gcc
        # musl-gcc leaves out the index of unwind tables, which the compiler of a system with musl links.
        index=-Wl,--eh-frame-hdr
        lua_launcher -- -DCMAKE_C_FLAGS=-Werror "-DCMAKE_EXE_LINKER_FLAGS=$index" "-DCMAKE_MODULE_LINKER_FLAGS=$index"
        # The module, in an interpreter that is not hakmem's.
        "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_lua_module_54 >build.log || { cat build.log; fail "module"; }
        cat >interpreter.c <<'C'
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    const int failed = argc < 2 || luaL_dofile(L, argv[1]);
    if (failed) fprintf(stderr, "%s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed;
}
C
        musl-gcc -O2 -rdynamic $index "-I$LUA_SOURCE" interpreter.c -Wl,--whole-archive lua/liblua5.4.a -Wl,--no-whole-archive \
            -lm -o lua5.4
        cat >module.lua <<'LUA'
local hakmem = require "hakmem"
local t = {}
for i = 1, 1000 do t[i] = { i, function() return i end } end
local labels, live = hakmem.labels()
local sum = 0
for _, label in pairs(labels) do sum = sum + label.live_bytes end
assert(sum == live and labels.closure.live_blocks >= 1000 and labels.array.live_blocks >= 1000)
hakmem.limit(hakmem.stats().committed_bytes + 1000000)
assert(not pcall(function() for i = 1, 1e7 do t[i] = { i } end end))
t = nil
assert(hakmem.trim() > 0)
LUA
        LUA_CPATH=$scratch/build/bindings/lua/modules/5.4/?.so ./lua5.4 module.lua || fail "the module: $?"
        ;;
    musl_hosts)
        needs_program musl-gcc "musl-tools"
        CC=musl-gcc
        run_by=(env)
        LINK=-Wl,--eh-frame-hdr
        hosts -DCMAKE_C_FLAGS=-Werror "-DCMAKE_SHARED_LINKER_FLAGS=$LINK"
        # No name that glibc alone has.
        needed=$(readelf --dynamic "$scratch/build/bindings/preload/libhakmem-preload.so" | grep NEEDED)
        [[ $needed == *'[libc.so]'* && $(wc -l <<<"$needed") -eq 1 ]] || fail "the shim needs $needed"
        ;;
    vcpkg)
        python3 - "$SOURCE/cmake/vcpkg" "$VERSION" <<'PYTHON' || fail "vcpkg.json"
import json, re, sys
from pathlib import Path
port = json.loads((Path(sys.argv[1]) / "vcpkg.json").read_text())
assert port["version"] == sys.argv[2], f"the port's version is {port['version']}, not {sys.argv[2]}"
# What vcpkg takes: these members, a name in small letters, dependencies that are for the machine that builds.
assert port.keys() <= {"name", "version", "description", "homepage", "license", "supports", "dependencies"}, port.keys()
assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", port["name"])
assert re.fullmatch(r"[a-z0-9()&|! ]+", port["supports"]) and port["supports"].count("(") == port["supports"].count(")")
assert all(one["host"] is True and one.keys() == {"name", "host"} for one in port["dependencies"])
# Each function of vcpkg that the portfile calls comes from a port that is named there, or from vcpkg itself.
called = set(re.findall(r"^(vcpkg_\w+)\(", (Path(sys.argv[1]) / "portfile.cmake").read_text(), re.M))
from_ports = {"vcpkg_cmake_configure": "vcpkg-cmake", "vcpkg_cmake_install": "vcpkg-cmake", "vcpkg_cmake_config_fixup": "vcpkg-cmake-config"}
needed = {from_ports[name] for name in called - {"vcpkg_fixup_pkgconfig", "vcpkg_install_copyright"}}
assert needed == {one["name"] for one in port["dependencies"]}, needed
PYTHON
        "$CMAKE" "-DPORT_FOLDER=$SOURCE/cmake/vcpkg" "-DFOLDER=$scratch/port" "-DCC=$CC" -P "$here/vcpkg.cmake" ||
            fail "the portfile fails"
        # What vcpkg looks for itself in a package: empty folders, and paths of the machine in files of text.
        empty=$(find "$scratch/port/packages" -type d -empty)
        [[ -z $empty ]] || fail "empty: $empty"
        ! grep -rIlF "$scratch" "$scratch/port/packages" || fail "these have paths of this machine"
        mv "$scratch/port/packages" "$scratch/moved"
        must_exist "$scratch/moved/share/hakmem/copyright"
        must_not_exist "$scratch"/moved/{debug/include,debug/share,share/doc,lib/cmake,debug/lib/cmake}
        for type in Release Debug; do
            "$CMAKE" -G "Unix Makefiles" -S "$here/find_package" -B $type -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=$type -DPARTS= \
                -DWANTED_VERSION="$VERSION" -DEXAMPLES="$EXAMPLES" "-DCMAKE_PREFIX_PATH=$scratch/moved" >/dev/null
            "$CMAKE" --build $type >/dev/null
            $type/embed >/dev/null || fail "embed in $type"
        done
        grep -q "moved/debug/lib/libhakmem.a" Debug/CMakeFiles/embed.dir/link.txt || fail "Debug links the release library"
        grep -q "moved/lib/libhakmem.a" Release/CMakeFiles/embed.dir/link.txt || fail "Release links the debug library"
        ;;
    unoptimized)
        unoptimized -O0
        unoptimized -Og
        # What ThreadSanitizer's tree compiles has other attributes.
        "$CC" -std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror -fsanitize=thread -I. -fsyntax-only hakmem.c ||
            fail "the core has warnings where it is compiled for ThreadSanitizer"
        # Headers of macOS bring functions of sockets and more: no function of the one file may have the name of one of libc.
        headers=()
        for header in sys/socket.h netdb.h unistd.h sys/stat.h sys/wait.h signal.h time.h math.h ctype.h stdio.h stdlib.h \
            string.h strings.h pthread.h sched.h poll.h; do headers+=(-include "$header"); done
        "$CC" -std=gnu11 -D_GNU_SOURCE "${headers[@]}" -I. -fsyntax-only hakmem.c || fail "a name of libc"
        ;;
    aarch64_lua)
        cross_aarch64
        lua_launcher qemu-aarch64-static -L /usr/aarch64-linux-gnu -- "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake"
        ;;
    aarch64_python)
        # The hook knows no version of CPython, and needs none to link.
        cross_aarch64
        configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_PYTHON=ON -DHAKMEM_WERROR=ON \
            "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake"
        "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_pyhook >build.log || { cat build.log; fail "build"; }
        must_exist "$scratch/build/bindings/python/hakmem/libhakmem_pyhook.so"
        ;;
    aarch64_hosts)
        cross_aarch64
        run_by=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
        with_variable=-E
        hosts "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake"
        ;;
    aarch64_without)
        # pkg-config is that of this machine, and its libraries are not those of the target.
        cross_aarch64
        pkg-config --exists lua5.4 || skip "no lua5.4 on this machine"
        configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_LUA=ON -DHAKMEM_BUILD_REPORT=ON \
            "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake"
        grep -q 'hakmem: the lua5.4 that pkg-config finds is not for the target' "$scratch/build.log" ||
            { cat "$scratch/build.log"; fail "it is not said that Lua is left out"; }
        "$CMAKE" --build "$scratch/build" --target help >targets
        ! grep -E 'hakmem_lua|haklua|hakmem_command' targets || fail "these are of this machine"
        ;;
    aarch64 | riscv64)
        cross_linux "$case"
        [[ $case != riscv64 ]] || ATOMIC=-latomic
        # Tests in C are enough.
        unset CXX
        CXX=$scratch/no-such-compiler configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_TESTS=ON -DHAKMEM_WERROR=ON \
            "-DCMAKE_TOOLCHAIN_FILE=$SOURCE/cmake/toolchains/linux.cmake" "-DHAKMEM_PROCESSOR=$case"
        tests=(test_smoke test_layout os_contract)
        "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_shared "${tests[@]}" >/dev/null
        for test in "${tests[@]}"; do
            "qemu-$case-static" -L "/usr/$case-linux-gnu" "$scratch/build/tests/$test" >"$test.log" ||
                { cat "$test.log"; fail "$test"; }
        done
        unoptimized -O0 "qemu-$case-static" -L "/usr/$case-linux-gnu"
        # Bindings that nobody tried are not silent.
        if [[ $case == riscv64 ]]; then
            CXX=$scratch/no-such-compiler configure "$scratch/bindings" $(parts ON) -DHAKMEM_BUILD_TESTS=OFF -DHAKMEM_BUILD_BENCH=OFF \
                "-DCMAKE_TOOLCHAIN_FILE=$SOURCE/cmake/toolchains/linux.cmake" -DHAKMEM_PROCESSOR=riscv64 "-DHAKMEM_PACKAGES=$PACKAGES"
            [[ $(grep -c 'hakmem: HAKMEM_BUILD_.*: nothing of this part was tried on riscv64' "$scratch/bindings.log") -eq 5 ]] ||
                { cat "$scratch/bindings.log"; fail "it is not said which bindings nobody tried"; }
        fi
        # The golden table is of gcc 12.
        if [[ $case == aarch64 && $("$CC" -dumpversion) == 12* ]]; then
            "$CC" -std=c11 -O3 -I. -c hakmem.c -o core.o
            "$CC" -std=c11 -O3 "-I$SOURCE/core/include" -c "$here/../core/hotpath.c" -o hotpath.o
            "$CC" -static hotpath.o core.o -o hotpath
            python3 "$here/../core/instructions_qemu.py" qemu-aarch64-static ./hotpath hotpath.o \
                "$here/../golden/instructions-aarch64.json" || fail "$? paths have other lengths"
        fi
        ;;
    windows)
        needs_program x86_64-w64-mingw32-g++-posix g++-mingw-w64-x86-64-posix
        wine=$(command -v wine64 || command -v wine) || skip "no wine (Debian package: wine64)"
        CC=x86_64-w64-mingw32-gcc-posix
        # Catch2 2 is one header, which Debian has for all systems.
        if [[ -e /usr/include/catch2/catch.hpp ]]; then
            mkdir catch
            ln -s /usr/include/catch2 catch/catch2
        fi
        export WINEPREFIX=$scratch/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY=
        lua_library -O2
        configure "$scratch/build" "-DCMAKE_TOOLCHAIN_FILE=$SOURCE/cmake/toolchains/mingw-w64.cmake" -DHAKMEM_WERROR=ON \
            "-DHAKMEM_CATCH2=$PWD/catch" "-DCMAKE_FIND_ROOT_PATH=$PWD"
        grep -q 'HAKMEM_BUILD_PYTHON is off: on Windows' "$scratch/build.log" || fail "it is not said what is left out"
        "$CMAKE" --build "$scratch/build" --parallel 2 >build.log || { tail -n 40 build.log; fail "build"; }
        # hakmem.dll has what libhakmem.so has, and the one constant of the headers.
        x86_64-w64-mingw32-objdump -p "$scratch/build/core/hakmem.dll" | grep -oE '\bhak_[a-z0-9_]+$' | sort -u >has
        grep -oE 'hak_[a-z0-9_]+\(.* @HAKMEM' "$SOURCE/tests/golden/hakmem.abi" | grep -oE '^hak_[a-z0-9_]+' |
            { cat; echo hak_inline_left_at; } | sort -u >wanted
        diff wanted has || fail "hakmem.dll exports something else than libhakmem.so"
        "$wine" wineboot --init >wineboot.log 2>&1 || { cat wineboot.log; fail "wine makes no folder for itself"; }
        ctest --test-dir "$scratch/build" --output-on-failure || fail "tests in wine"
        lua_script "$wine" "$scratch/build/bindings/lua/haklua5.4.exe"
        # vcpkg's port, and a project that finds it.
        toolchain=$SOURCE/cmake/toolchains/mingw-w64.cmake
        "$CMAKE" "-DPORT_FOLDER=$SOURCE/cmake/vcpkg" "-DFOLDER=$scratch/port" "-DTOOLCHAIN=$toolchain" -P "$here/vcpkg.cmake" ||
            fail "the portfile fails"
        must_exist "$scratch"/port/packages/{lib/libhakmem.a,bin/hakmem.dll,share/hakmem/copyright}
        "$CMAKE" -S "$here/find_package" -B port "-DCMAKE_TOOLCHAIN_FILE=$toolchain" -DCMAKE_BUILD_TYPE=Release -DPARTS= \
            -DWANTED_VERSION="$VERSION" -DEXAMPLES="$EXAMPLES" "-DCMAKE_FIND_ROOT_PATH=$scratch/port/packages" >port.log ||
            { cat port.log; fail "find_package"; }
        "$CMAKE" --build port >port.log || { cat port.log; fail "a project with the port"; }
        "$wine" port/embed.exe >/dev/null || fail "embed.exe: $?"
        # It leaves some seconds after its last program, and writes to the folder until then.
        timeout 240 wineserver -w || fail "wine's server does not end"
        ;;
    wasm2c_other)
        # A header as later versions of wabt have it, with 64-bit memories.
        mkdir rt
        cat >rt/wasm-rt.h <<'C'
void wasm_rt_allocate_memory(wasm_rt_memory_t*,
                             uint64_t initial_pages,
                             uint64_t max_pages,
                             bool is64);
C
        touch rt/wasm-rt-impl.h rt/libwasm-rt-impl.a
        cat >CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES C)
include($SOURCE/bindings/wasm-host/hakmemWasm.cmake)
hakmem_add_wasm_wasm2c(adapter)
if(TARGET adapter)
    message(FATAL_ERROR "an adapter is made that does not compile")
endif()
message(STATUS "\${HAKMEM_WASM_RT_WHY}")
CMAKE
        "$CMAKE" -S . -B build -DCMAKE_C_COMPILER="$CC" "-DHAKMEM_WASM_RT=$PWD/rt/libwasm-rt-impl.a" \
            "-DHAKMEM_WASM_RT_INCLUDE=$PWD/rt" "-DHAKMEM_WASM_RT_IMPL_INCLUDE=$PWD/rt" >log 2>&1 ||
            { cat log; fail "an adapter for it"; }
        grep -q 'rt/wasm-rt.h is not that of wabt 1.0.32' log || { cat log; fail "no reason"; }
        ;;
    *)
        . "$here/systems.sh"
        ;;
esac
