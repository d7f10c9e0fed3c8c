#!/usr/bin/env bash
# consume.sh case prefix scratch-folder
# Uses one thing of an installed prefix the way a stranger does: nothing of the source tree but examples.
# Exit status 77: skipped, for the reason printed.
set -euo pipefail
case=$1 prefix=$2 scratch=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/case.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

must_exist() {
    for path; do
        [[ -e $path ]] || fail "$path was not installed"
    done
}
linked_shared() { # program
    grep -q 'NEEDED.*libhakmem' <<<"$(readelf --dynamic "$1")"
}
pc() { # prefix, arguments
    PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config "${@:2}" "${module:-hakmem}"
}

# The thing of the Lua binding that a runtime's development files (by pkg-config's name) call for.
needs_lua() { # pkg-config name, paths
    [[ ${LUA^^} == ON ]] || skip "built with HAKMEM_BUILD_LUA=$LUA"
    pkg-config --exists "$1" || skip "$1 was not there when hakmem was built"
    must_exist "${@:2}"
}

find_package() { # arguments for cmake
    "$CMAKE" -S "$here/find_package" -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
        -DWANTED_VERSION="$VERSION" -DEXAMPLES="$EXAMPLES" "-DPARTS=${PARTS// /;}" -DPYTHON="$PYTHON" "$@"
    "$CMAKE" --build build
    build/embed
}

launcher() { # program
    local program=$prefix/bin/$1 out
    cat >script.lua <<'LUA'
local t = {}
for i = 1, 1000 do t[i] = { tostring(i) } end
io.write(#t, " ", arg[1], "\n")
os.exit(7, true)
LUA
    set +e
    out=$("$program" --hak-report script.lua one 2>report)
    local status=$?
    set -e
    [[ $status -eq 7 ]] || fail "exit status $status instead of the script's 7"
    [[ $out == "1000 one" ]] || fail "the script printed '$out'"
    grep -q table report || fail "no label 'table' in the report: $(cat report)"
}

module() { # runtime, version of the path
    LUA_INIT='' LUA_CPATH="$prefix/lib/lua/$2/?.so" "$1" - <<'LUA'
local hakmem = require "hakmem"
local kept = {}
for i = 1, 10000 do kept[i] = { i } end
local stats, sum = hakmem.stats(), 0
for _, label in pairs(hakmem.labels()) do sum = sum + label.live_bytes end
-- labels() makes a table itself: the totals are taken again after it.
assert(stats.live_bytes > 10000 * 16, "adopted state shows " .. stats.live_bytes .. " live bytes")
assert(sum > 10000 * 16, "labels sum to " .. sum)
print(stats.live_bytes, sum)
LUA
}

lua_host() { # runtime by pkg-config's name, target
    "$CMAKE" -S "$here/lua_host" -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
        -DWANTED_VERSION="$VERSION" -DEXAMPLES="$EXAMPLES" -DRUNTIME="$1" -DTARGET="$2"
    "$CMAKE" --build build
    cat >modest.lua <<'LUA'
local t = {}
for i = 1, 10000 do t[i] = { tostring(i) } end
assert(#t == 10000)
LUA
    cat >greedy.lua <<'LUA'
local t = {}
for i = 1, 1e7 do t[i] = { tostring(i) } end
LUA
    local status=0
    build/lua_host modest.lua greedy.lua modest.lua >out 2>err || status=$?
    cat out err
    [[ $status -eq 1 ]] || fail "exit status $status instead of 1 for the greedy script"
    [[ $(grep -c 'not enough memory' err) -eq 1 ]] || fail "no or more than one error of memory"
    [[ $(grep -c '^modest.lua: [0-9]* of 8388608 bytes' out) -eq 2 ]] || fail "the modest scripts did not both end"
}

wasm_host() { # argument of the program, arguments for cmake; 1 = does not compile
    "$CMAKE" -S "$here/wasm_host" -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
        -DWANTED_VERSION="$VERSION" "${@:2}" >configure.log 2>&1 || { cat configure.log; fail "cmake fails"; }
    "$CMAKE" --build build >build.log 2>&1 || return 1
    # shellcheck disable=SC2086
    [[ $(build/host $1) == "${expected:-4711 0 -1}" ]] || fail "the host prints $(build/host $1)"
}

case $case in
    find_package)
        unset CMAKE_GENERATOR # as a stranger has it
        find_package -DBUILD_SHARED_LIBS=OFF
        ! linked_shared build/embed || fail "linked with the shared library"
        ;;
    find_package_shared)
        find_package -DBUILD_SHARED_LIBS=ON
        linked_shared build/embed || fail "linked with the static library"
        ;;
    pkgconfig_shared)
        $CC "$EXAMPLES/embed.c" $(pc "$prefix" --cflags --libs) -o embed
        linked_shared embed || fail "linked with the static library"
        LD_LIBRARY_PATH=$prefix/lib ./embed
        [[ $(pc "$prefix" --modversion) == "$VERSION" ]] || fail "version $(pc "$prefix" --modversion)"
        ;;
    pkgconfig_static)
        $CC -static "$EXAMPLES/embed.c" $(pc "$prefix" --static --cflags --libs) -o embed
        ./embed
        ;;
    report_static | report_shared)
        [[ " $PARTS " == *" report "* ]] || skip "built without the library"
        module=hakmem-report
        if [[ $case == report_static ]]; then
            $CC -static "$EXAMPLES/counted.c" $(pc "$prefix" --static --cflags --libs) -o counted
        else
            $CC "$EXAMPLES/counted.c" $(pc "$prefix" --cflags --libs) -o counted
            [[ $(readelf --dynamic counted | grep -c 'NEEDED.*libhakmem') -eq 2 ]] || fail "not with both shared libraries"
        fi
        LD_LIBRARY_PATH=$prefix/lib ./counted report.json
        grep -q '"function":"handle","file":"server.vm","line":3' report.json || fail "the report is $(cat report.json)"
        # C11 without extensions, alone and first.
        for header in report sites reserve; do
            echo "#include <hakmem/$header.h>" >$header.c
            $CC -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only $header.c $(pc "$prefix" --cflags)
        done
        ;;
    cxx)
        for header in "$prefix"/include/hakmem/*.h "$prefix/include/hakmem/hakmem.hpp"; do
            flags=()
            if [[ $header == */lua.h ]]; then
                pkg-config --exists luajit || continue
                flags=($(pkg-config --cflags luajit))
            elif [[ $header == */wasm_wasmtime*.h ]]; then
                flags=()
                for folder in ${WASMTIME//:/ }; do flags+=(-isystem "$folder"); done
                [[ -n $WASMTIME ]] || continue
            elif [[ $header == */wasm_wamr.h ]]; then
                [[ -n $WAMR ]] || continue
                flags=(-isystem "$WAMR/core/iwasm/include")
            elif [[ $header == */wasm_wasm2c.h ]]; then
                [[ -x $WASM2C ]] || continue
            fi
            $CXX -std=c++17 -Wall -Wextra -Wpedantic -Werror "-DHEADER=<hakmem/${header##*/}>" "${flags[@]}" \
                "$here/inclusion.cpp" $(pc "$prefix" --cflags) "$prefix/lib/libhakmem.a" -o inclusion
            ./inclusion || fail "the program that includes ${header##*/} failed"
        done
        ;;
    moved)
        cp -a "$prefix" elsewhere
        prefix=$scratch/elsewhere
        find_package
        $CC "$EXAMPLES/embed.c" $(pc "$prefix" --cflags --libs) -o embed
        [[ $(pc "$prefix" --cflags) == *"$scratch/elsewhere"* ]] || fail "$(pc "$prefix" --cflags)"
        LD_LIBRARY_PATH=$prefix/lib ./embed
        ;;
    preload)
        [[ ${PRELOAD^^} == ON ]] || skip "built with HAKMEM_BUILD_PRELOAD=$PRELOAD"
        must_exist "$prefix/lib/libhakmem-preload.so"
        HAKMEM=report=stderr,name=consumer LD_PRELOAD=$prefix/lib/libhakmem-preload.so ls "$prefix" >out 2>report
        [[ $(cat out) == "$(ls "$prefix")" ]] || fail "ls printed $(cat out)"
        grep -q '^hakmem [0-9.]*: consumer, process' report || fail "no report: $(cat report)"
        ;;
    wasm_host_wamr)
        [[ -n $WAMR ]] || skip "WAMR was not there when hakmem was built"
        wasm_host "$GUESTS/zero.wasm" -DRUNTIME=wamr -DROOT="$WAMR" || { cat build.log; fail "does not compile"; }
        # WAMR as a library that another project made.
        mv build made
        wasm_host "$GUESTS/zero.wasm" -DRUNTIME=wamr "-DLIBRARY=$scratch/made/wamr/libiwasm.a" \
            "-DSETTINGS=$scratch/made/settings.cmake" || { cat build.log; fail "does not compile with a library"; }
        rm -r build
        mv made build
        # Settings that do not serve are told.
        ! wasm_host "" -DUNFIT=ON || fail "compiles without WAMR_BUILD_ALLOC_WITH_USER_DATA"
        grep -q 'these settings of WAMR do not serve' build.log || { cat build.log; fail "no clear message"; }
        ;;
    wasm_host_wasm2c)
        [[ -x $WASM2C ]] || skip "wasm2c was not there when hakmem was built"
        "$WASM2C" "$GUESTS/zero.wasm" -o zero.c
        wasm_host "" -DRUNTIME=wasm2c -DGUEST="$scratch/zero" || { cat build.log; fail "does not compile"; }
        ;;
    wasm_host_wasmtime)
        [[ -n $WASMTIME ]] || skip "wasmtime was not there when hakmem was built"
        flags=("-I$prefix/include")
        for folder in ${WASMTIME//:/ }; do flags+=(-isystem "$folder"); done
        cat >version.c <<'C'
#include <wasmtime.h>
#ifdef OTHER
#undef WASMTIME_VERSION_MAJOR
#define WASMTIME_VERSION_MAJOR OTHER
#endif
#include <hakmem/wasm_wasmtime.h>
C
        $CC -fsyntax-only "${flags[@]}" version.c
        ! $CC -fsyntax-only "${flags[@]}" -DOTHER=49 version.c 2>errors || fail "wasmtime 49 is taken"
        grep -q 'is for wasmtime 50' errors || { cat errors; fail "no clear message"; }
        expected="4711 0 4711" wasm_host "$GUESTS/zero.wasm" -DRUNTIME=wasmtime "-DINCLUDES=${WASMTIME//:/;}" \
            "-DLIBRARY=$WASMTIME_LIBRARY" || { cat build.log; fail "does not compile"; }
        ;;
    go)
        PATH=$PATH:/usr/local/go/bin
        needs_program go
        cp "$EXAMPLES"/go/* .
        export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
        CGO_ENABLED=1 GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o tenants . || fail "does not build"
        [[ -z $(gofmt -l .) ]] || fail "gofmt: $(gofmt -l .)"
        ./tenants >out || fail "status $?"
        # Two tenants, one after the other.
        [[ $(grep -c '^row 999, 1 blocks of rows, 500 of names$' out) -eq 2 ]] || { cat out; fail "labels"; }
        [[ $(grep -c '^after at least half of the limit: true, within it: true$' out) -eq 2 ]] || { cat out; fail "limit"; }
        [[ $(grep -c '^hakmem: the heap has reached its limit' out) -eq 2 ]] || { cat out; fail "error"; }
        ;;
    zig)
        zig=(zig)
        [[ ! $("$PYTHON" -m ziglang version 2>/dev/null) ]] || zig=("$PYTHON" -m ziglang)
        needs_program "${zig[0]}"
        [[ $("${zig[@]}" version) == 0.15.* ]] || skip "Zig $("${zig[@]}" version), the example is for 0.15"
        cp "$EXAMPLES"/zig/*.zig .
        export ZIG_GLOBAL_CACHE_DIR=$scratch/cache ZIG_LOCAL_CACHE_DIR=$scratch/cache
        flags=(-lc "-I$prefix/include" "-L$prefix/lib" -lhakmem -rpath "$prefix/lib")
        "${zig[@]}" fmt --check . || fail "zig fmt"
        "${zig[@]}" test main.zig "${flags[@]}" || fail "tests"
        "${zig[@]}" run main.zig "${flags[@]}" 2>out || { cat out; fail "does not build or run"; }
        [[ $(grep -c '^row 999, 1 blocks of rows, 500 of names$' out) -eq 2 ]] || { cat out; fail "labels"; }
        line='^after at least half of the limit: true, within it: true, OutOfMemory$'
        [[ $(grep -c "$line" out) -eq 2 ]] || { cat out; fail "limit"; }
        ;;
    hakluajit)
        needs_lua luajit "$prefix/bin/hakluajit"
        launcher hakluajit
        ;;
    haklua5.*)
        needs_lua "${case#hak}" "$prefix/bin/$case"
        launcher "$case"
        ;;
    module_luajit | module_lua5.1)
        runtime=${case#module_}
        needs_lua lua5.1 "$prefix/lib/lua/5.1/hakmem.so"
        needs_program "$runtime"
        module "$runtime" 5.1
        ;;
    module_lua5.*)
        runtime=${case#module_}
        needs_lua "$runtime" "$prefix/lib/lua/${runtime#lua}/hakmem.so"
        needs_program "$runtime"
        module "$runtime" "${runtime#lua}"
        ;;
    rock_*)
        runtime=${case#rock_}
        needs_program luarocks
        needs_program "$runtime"
        pkg-config --exists "$runtime" || skip "no headers of $runtime"
        version=${runtime#lua}
        [[ $runtime != luajit ]] || version=5.1
        # LuaRocks finds the headers of PUC Lua by itself.
        incdir=()
        [[ $runtime != luajit ]] || incdir=("LUA_INCDIR=$(pkg-config --variable=includedir luajit)")
        (cd "$SOURCE" && luarocks --lua-version "$version" --tree "$scratch/tree" \
            make bindings/lua/hakmem-0.1.0-1.rockspec "CC=${CCACHE:-} $CC" "${incdir[@]}" >"$scratch/log" 2>&1) ||
            { cat log; fail "luarocks make"; }
        mkdir -p lib
        mv tree/lib/lua lib/lua
        prefix=$scratch
        module "$runtime" "$version"
        ;;
    lua_host_*)
        runtime=${case#lua_host_}
        name=${runtime#lua5.}
        [[ $name == luajit ]] || name=5$name
        needs_lua "$runtime" "$prefix/lib/libhakmem_lua_$name.a" "$prefix/include/hakmem/lua.h"
        lua_host "$runtime" "hakmem::lua_$name"
        ;;
    *)
        fail "no such case"
        ;;
esac
