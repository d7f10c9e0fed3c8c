# Further cases of configure.sh, which includes this file: what is made for systems that this machine is not.

# What scripts/release-other makes is in made/; HAKMEM_OTHER has what a run after this one need not fetch and build again.
release_other() { # parts
    "$SOURCE/scripts/release-other" made "$@" >release.log 2>&1 && return 0
    cat release.log
    ! grep -q 'is not to be had\|Could not resolve\|Failed to fetch\|Unable to fetch' release.log || skip "no packages to be had"
    fail "scripts/release-other"
}
# Unpacks the one wheel, which is to be for this platform, into site/.
unpack_wheel() { # pattern of its platform
    local wheels=(made/*.whl)
    [[ ${#wheels[@]} -eq 1 && ${wheels[0]} == made/hakmem-"$VERSION"-cp*-$1.whl ]] || fail "the wheel is $(ls made)"
    python3 -m zipfile -e "${wheels[0]}" site
    grep -q "^Tag: cp.*-${1//\*/.*}$" site/hakmem-*.dist-info/WHEEL || fail "the tags are $(grep ^Tag site/hakmem-*.dist-info/WHEEL)"
}
# Sources that cmake/fetch.cmake knows; writes to place where they are.
sources_of() { # name
    "$CMAKE" "-DHAKMEM_PACKAGES=$PACKAGES" "-DOUT=$PWD/place" -P "$SOURCE/cmake/fetch.cmake" "$1" >fetch.log 2>&1 ||
        skip "no sources of $1"
}
# jansson as an archive for another system, in prefix/: Debian has none.
jansson_library() { # toolchain file
    sources_of jansson
    "$CMAKE" -S "$(<place)" -B jansson "-DCMAKE_TOOLCHAIN_FILE=$1" "-DCMAKE_INSTALL_PREFIX=$PWD/prefix" \
        -DCMAKE_BUILD_TYPE=Release -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON >jansson.log 2>&1 &&
        "$CMAKE" --build jansson --parallel 2 --target install >>jansson.log 2>&1 || { tail jansson.log; fail "jansson"; }
}
# A compiler of Rust with the sources of its library, which is then compiled for other systems: the libraries for them are
# not in Debian. That of the machine, or else Debian's, unpacked beside it.
rust_with_sources() {
    local names deb
    export RUSTC=rustc
    [[ ! -d $(rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library ]] || return 0
    names=$(LC_ALL=C apt-get install --simulate --no-install-recommends rustc-web rust-web-src 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    mkdir debs
    # shellcheck disable=SC2086
    [[ -n $names ]] && (cd debs && apt-get -q -o APT::Sandbox::User=root download $names) >rust.log 2>&1 ||
        skip "no compiler of Rust with the sources of its library, and none to be had"
    for deb in debs/*.deb; do dpkg-deb -x "$deb" rust; done
    export RUSTC=$PWD/rust/usr/bin/rustc
    LD_LIBRARY_PATH=$(cd rust/usr/lib/*-linux-gnu && pwd)
    export LD_LIBRARY_PATH
}
# zig's compilers and headers for other systems.
find_zig() {
    zig=(python3 -m ziglang)
    "${zig[@]}" version >/dev/null 2>&1 && return 0
    { python3 -m venv venv && venv/bin/pip -q install ziglang==0.17.1; } >log 2>&1 ||
        skip "no Python package ziglang, and none to be had"
    zig=("$PWD/venv/bin/python" -m ziglang)
}
# Tools for macOS as programs of their own, in $1/tools, and a toolchain file. zig has no -bundle, which CMake says for a
# module, and knows systems and processors by other names than Apple's compiler, for which cargo takes it.
zig_for_macos() { # processor
    mkdir -p "$1/tools"
    local tool words
    printf -v words '%q ' "${zig[@]}"
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$words" $tool >"$1/tools/$tool"
    done
    cat >"$1/tools/cc" <<TOOL
#!/usr/bin/env bash
words=()
for word; do
    case \$word in
        -bundle) words+=(-shared) ;;
        --target=* | -mmacosx-version-min=*) ;;
        # zig leaves a file a.o where it is asked.
        --version) cd "$PWD/$1" && words+=(--version) ;;
        *) words+=("\$word") ;;
    esac
done
exec $words cc -target $1-macos "\${words[@]}"
TOOL
    chmod +x "$1"/tools/*
    cat >"$1/toolchain.cmake" <<CMAKE
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR $1)
set(CMAKE_C_COMPILER $PWD/$1/tools/cc)
set(CMAKE_AR $PWD/$1/tools/ar)
set(CMAKE_RANLIB $PWD/$1/tools/ranlib)
set(CMAKE_INSTALL_NAME_TOOL true)
CMAKE
}
is_mach_o() { # processor, file: by the first words of its head
    local words
    words=$(od -A n -t x4 -N 8 "$2" | tr -d ' ')
    case $1 in
        x86_64) [[ $words == feedfacf01000007 ]] ;;
        aarch64) [[ $words == feedfacf0100000c ]] ;;
    esac
}
# tests/callsite/macho.c with the format's headers from zig, and types of the system that they name: a program for this machine.
reader_of_symbols() { # sets reader
    local headers
    headers=$("${zig[@]}" env | sed -n 's/.*lib_dir"* *[:=] *"\([^"]*\)".*/\1/p')/libc/include/any-darwin-any
    must_exist "$headers/mach-o/loader.h"
    mkdir -p reader/mach/machine reader/architecture
    echo 'typedef int cpu_type_t, cpu_subtype_t;' >reader/mach/machine.h
    echo 'typedef int vm_prot_t;' >reader/mach/vm_prot.h
    touch reader/mach/machine/thread_status.h reader/architecture/byte_order.h
    reader=$PWD/reader/macho
    "$CC" -O1 -Wall -Wextra -Werror "-I$SOURCE/bindings" "-I$SOURCE/bindings/callsite" -Ireader -idirafter "$headers" \
        "$here/../callsite/macho.c" "$SOURCE/bindings/callsite/darwin/symbols.c" -o "$reader" || fail "the reader of symbols"
}
all_are() { # processor, as readelf says it; files
    local file
    for file in "${@:2}"; do
        readelf -h "$file" | grep -q "Machine: *$1" || fail "$file is for $(readelf -h "$file" | grep Machine)"
    done
}
# A guest in each runtime for WASM, and its reset, as tests of what is installed have them. run_by: what runs the programs.
wasm_hosts() { # arguments for cmake
    local wamr wasmtime includes
    export HAKMEM_PACKAGES=$PACKAGES
    configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_WASM=ON -DHAKMEM_WERROR=ON "$@" "-DHAKMEM_PACKAGES=$PACKAGES" -DHAKMEM_WASM2C=
    "$CMAKE" --build "$scratch/build" --parallel 2 >build.log || { cat build.log; fail "build"; }
    "$CMAKE" --install "$scratch/build" --prefix "$scratch/prefix" >/dev/null
    toolchain=("$@")
    variable() { sed -n "s/^$1:INTERNAL=//p" "$scratch/build/CMakeCache.txt"; }
    host_of() { # runtime, what it prints, the program's argument, arguments for cmake
        "$CMAKE" -S "$here/wasm_host" -B "$1" "${toolchain[@]}" "-DCMAKE_FIND_ROOT_PATH=$scratch/prefix" \
            "-Dhakmem_DIR=$scratch/prefix/lib/cmake/hakmem" "-DWANTED_VERSION=$VERSION" "-DRUNTIME=$1" "${@:4}" >"$1.log" 2>&1 &&
            "$CMAKE" --build "$1" --parallel 2 >>"$1.log" 2>&1 || { cat "$1.log"; fail "a host with $1"; }
        # shellcheck disable=SC2086
        [[ $("${run_by[@]}" "$1/host" $3) == "$2" ]] || fail "$1 prints $("${run_by[@]}" "$1/host" $3)"
    }
    wamr=$(variable HAKMEM_WAMR_ROOT) wasmtime=$(variable HAKMEM_WASMTIME_LIBRARY)
    [[ -n $wamr ]] || skip "no sources of WAMR"
    host_of wamr "4711 0 -1" "$GUESTS/zero.wasm" "-DROOT=$wamr"
    WASM2C=${WASM2C:-$(command -v wasm2c || true)}
    if [[ -x $WASM2C && -e /usr/share/wabt/wasm2c/wasm-rt-impl.c ]]; then
        # Debian's library of wasm2c's runtime is for this machine and glibc; its source is there.
        "$CC" -O2 -c /usr/share/wabt/wasm2c/wasm-rt-impl.c -o wasm-rt-impl.o -I/usr/share/wabt/wasm2c -idirafter /usr/include
        "${AR:-ar}" rcs libwasm-rt-impl.a wasm-rt-impl.o
        mkdir rt
        cp /usr/include/wasm-rt.h rt
        "$WASM2C" "$GUESTS/zero.wasm" -o zero.c
        host_of wasm2c "4711 0 -1" "" "-DGUEST=$PWD/zero" "-DHAKMEM_WASM_RT=$PWD/libwasm-rt-impl.a" "-DHAKMEM_WASM_RT_INCLUDE=$PWD/rt" \
            -DHAKMEM_WASM_RT_IMPL_INCLUDE=/usr/share/wabt/wasm2c
    fi
    [[ -n $wasmtime ]] || skip "no such wheel of wasmtime; the other runtimes are right"
    includes=$(variable HAKMEM_WASMTIME_INCLUDES)
    host_of wasmtime "4711 0 4711" "$GUESTS/zero.wasm" "-DINCLUDES=${includes//:/;}" "-DLIBRARY=$wasmtime"
}
# What a Python with hakmem is to do, wherever it runs.
python_under() { # command that runs an interpreter with the hook and a profile by line in python.json
    cat >python.py <<'PYTHON'
import hakmem, os
state = hakmem.status()
assert state["obj"] == state["raw"] == "replaced", state
keep = [str(i) * 9 for i in range(20000)]
parts = hakmem.take_snapshot().parts
assert sum(l["live_bytes"] for l in parts["labels"].values()) == parts["stats"]["live_bytes"], "labels are the whole"
child = os.fork()
if child == 0:
    more = [bytes(100) for i in range(1000)]
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
hakmem.limit(hakmem.take_snapshot().parts["stats"]["committed_bytes"] + (1 << 20))
try:
    keep.append(bytearray(1 << 24))
except MemoryError:
    print("limited", len(keep))
PYTHON
    [[ $("$@" python.py) == "limited 20000" ]] || fail "a program under hakmem"
    python3 - python.json <<'PYTHON' || fail "lines in the profile"
import json, os, sys
context = json.load(open(sys.argv[1]))["contexts"][0]
lines = {}
for stack in filter(lambda stack: stack["frames"], context["stacks"]):
    frame = context["frames"][stack["frames"][0]]
    at = os.path.basename(frame.get("file", "")), frame.get("line")
    lines[at] = lines.get(at, 0) + stack["live_bytes"]
if lines.get(("python.py", 4), 0) < 20000 * 60:
    sys.exit(f"line 4 has {lines.get(('python.py', 4))} bytes; there are {sorted(lines.items(), key=lambda x: -x[1])[:5]}")
PYTHON
}

case $case in
    musl_python)
        needs_program musl-gcc musl-tools
        [[ -x /usr/bin/python3.11 && /usr/bin/python3 -ef /usr/bin/python3.11 ]] ||
            skip "the sources of CPython are those of Debian 12, and this machine's interpreter is another"
        export HAKMEM_OTHER=${HAKMEM_OTHER:-$scratch/other} HAKMEM_PACKAGES=$PACKAGES
        release_other wheel-musl
        unpack_wheel "musllinux_1_*_x86_64"
        python=$HAKMEM_OTHER/cpython-musl/build/python
        # pip of a system with musl would take the wheel.
        tag=$(sed -n 's/^Tag: //p' site/hakmem-*.dist-info/WHEEL)
        python3 -m zipfile -e /usr/share/python-wheels/pip-*.whl pip
        PYTHONPATH=$PWD/pip/pip/_vendor "$python" -c "from packaging.tags import sys_tags; import sys; sys.exit('$tag' not in map(str, sys_tags()))" ||
            fail "the interpreter takes no $tag"
        for file in site/hakmem/*.so; do
            ! readelf --dynamic "$file" | grep NEEDED | grep -v '\[libc\.so\]\|\[libhakmem_' || fail "$file needs a library"
        done
        must_exist site/hakmem/{libhakmem_pyhook.so,libhakmem_pymalloc.so,_hakmem.cpython-311-x86_64-linux-musl.so}
        export PYTHONPATH=$PWD/site
        [[ $("$python" -c 'import hakmem; print(hakmem.status()["obj"])') == default ]] || fail "import hakmem"
        python_under "$python" -m hakmem run --all --labels site --profile=exact --report python.json
        cat >threads.py <<'PYTHON'
import hakmem, os, threading
def work():
    for i in range(2000): bytearray(i * 7 % 4000)
threads = [threading.Thread(target=work) for i in range(4)]
for t in threads: t.start()
for i in range(5):
    child = os.fork()
    if child == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
for t in threads: t.join()
print(hakmem.status()["malloc"])
PYTHON
        [[ $("$python" -m hakmem run --malloc --all threads.py 2>/dev/null) == replaced ]] || fail "--malloc"
        # The hook's own tests, but for those that need ctypes, zlib or sqlite3, which want libraries for musl.
        for words in account recur start text "labels Scopes Kinds Interpreters Table Exact.test_raw_and_arenas_only"; do
            # shellcheck disable=SC2086
            "$python" -B "$here/../python/test_${words%% *}.py" ${words#"${words%% *}"} >test.log 2>&1 ||
                { tail -n 60 test.log; fail "test_${words%% *}.py"; }
        done
        ;;
    musl_wasm)
        needs_program musl-gcc "musl-tools"
        CC=musl-gcc
        musl-gcc -shared -fPIC -O1 -Wl,-soname,libgcc_s.so.1 "$here/no_unwind.c" -o libgcc_s.so.1
        run_by=(env "LD_LIBRARY_PATH=$PWD")
        # The linker would look for versions of the functions that wasmtime wants, which musl's loader does not know.
        wasm_hosts -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined
        ;;
    aarch64_wheel)
        needs_program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        needs_program qemu-aarch64-static qemu-user-static
        export HAKMEM_OTHER=${HAKMEM_OTHER:-$scratch/other} HAKMEM_PACKAGES=$PACKAGES
        release_other wheel-aarch64
        unpack_wheel "manylinux_2_*_aarch64"
        root=$HAKMEM_OTHER/root-arm64
        python=$(ls "$root"/usr/bin/python3.*)
        version=${python##*/python}
        must_exist site/hakmem/{libhakmem_pyhook.so,libhakmem_pymalloc.so,_hakmem.cpython-"${version/./}"-aarch64-linux-gnu.so}
        all_are AArch64 site/hakmem/*.so
        hook=$PWD/site/hakmem/libhakmem_pyhook.so
        # qemu-user starts no other program for it: the settings are those that `python -m hakmem run` makes.
        run=(qemu-aarch64-static -L "$root" -E "LD_PRELOAD=$hook" -E HAKMEM_DOMAINS=all -E "PYTHONPATH=$PWD/site")
        python_under "${run[@]}" -E HAKMEM_PROFILE=16K -E "HAKMEM_REPORT=$PWD/python.json" "$python"
        # Labels by call site: of each kind of object, and of an extension.
        cat >labels.py <<'PYTHON'
import decimal, gc, hakmem, weakref
class C: pass
cs = [C() for i in range(2000)]
def grown(make):
    make(0)
    gc.collect()
    before = hakmem.labels()
    kept = [make(i) for i in range(2000)]
    after = hakmem.labels()
    blocks = {name: after[name][1] - before.get(name, (0, 0))[1] for name in after}
    return max(blocks, key=blocks.get)
makers = {
    "unicode": lambda i: chr(i % 90 + 33) * 60 + str(i), "bytes": lambda i: b"%d" % i * 20, "int": lambda i: 10 ** 40 + i,
    "float": lambda i: complex(i, 1), "dict": lambda i: {i: i}, "list": lambda i: [i], "tuple": lambda i: tuple([i, i]),
    "set": lambda i: {i}, "function": lambda i: lambda: i, "instance": lambda i: C(), "weakref": lambda i: weakref.ref(cs[i], print),
    "exceptions": lambda i: ValueError(), "buffer": lambda i: memoryview(b"abc"), "ext:_decimal": lambda i: decimal.Decimal(i),
}
for name, make in makers.items():
    assert grown(make) == name, (name, grown(make))
assert hakmem.status()["mixed"] == {}, hakmem.status()
report = hakmem.take_snapshot().parts
labels, stats = report["labels"], report["stats"]
assert sum(label["live_bytes"] for label in labels.values()) == stats["live_bytes"], "labels are the whole"
assert labels["core"]["live_bytes"] * 7 < stats["live_bytes"], labels
print("labels")
PYTHON
        for labels in native site; do
            [[ $("${run[@]}" -E HAKMEM_LABELS=$labels "$python" labels.py) == labels ]] || fail "labels by call site: $labels"
        done
        ;;
    aarch64_debian)
        needs_program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        needs_program qemu-aarch64-static qemu-user-static
        needs_program dpkg-shlibdeps dpkg-dev
        export HAKMEM_OTHER=${HAKMEM_OTHER:-$scratch/other} HAKMEM_PACKAGES=$PACKAGES
        release_other debian-arm64
        found=$(cd made && ls ./*.deb | sed "s,^\./,,; s/_${VERSION}_/ /; s/\.deb$//")
        wanted="hakmem-doc all"$'\n'$(printf '%s arm64\n' hakmem-lua hakmem-preload hakmem-python hakmem-report libhakmem-dev libhakmem0.1)
        diff <(echo "$wanted") <(sort <<<"$found") || fail "other packages than expected"
        field() { dpkg-deb --field made/"$1"_*.deb "$2"; }
        for package in hakmem-lua hakmem-preload hakmem-python hakmem-report libhakmem0.1; do
            [[ $(field $package Architecture) == arm64 ]] || fail "$package is for $(field $package Architecture)"
            [[ $(field $package Depends) == *libc6\ \(\>=\ 2.* ]] || fail "$package needs $(field $package Depends)"
        done
        [[ $(field hakmem-report Depends) == *libjansson4*zlib1g* ]] || fail "hakmem-report needs $(field hakmem-report Depends)"
        for deb in made/*.deb; do dpkg-deb -x "$deb" root; done
        all_are AArch64 root/usr/bin/hakmem root/usr/bin/haklua5.4 $(find root/usr/lib -name '*.so*' -type f)
        # They run on a system of these packages.
        debian=$HAKMEM_OTHER/root-arm64
        run=(qemu-aarch64-static -L "$debian" -E "LD_LIBRARY_PATH=$PWD/root/usr/lib")
        [[ $("${run[@]}" root/usr/bin/hakmem --version) == *"$VERSION"* ]] || fail "the command hakmem"
        lua_script "${run[@]}" root/usr/bin/haklua5.4
        aarch64-linux-gnu-gcc -Iroot/usr/include "$EXAMPLES/embed.c" -Lroot/usr/lib -lhakmem -o embed
        "${run[@]}" ./embed >/dev/null || fail "embed"
        ;;
    without_parts)
        # Bindings that a system does not have are named when the tree is configured, each in one line, and the core is built.
        # The compiler of this machine serves: the files of another system are not what is looked at.
        system=(-DCMAKE_SYSTEM_NAME=FreeBSD -DCMAKE_SYSTEM_VERSION=14)
        configure "$scratch/build" $(parts ON) -DHAKMEM_BUILD_TESTS=OFF "${system[@]}"
        for part in LUA PYTHON WASM PRELOAD REPORT BENCH; do
            [[ $(grep -c "hakmem: HAKMEM_BUILD_$part is off: on FreeBSD there is no such part" "$scratch/build.log") -eq 1 ]] ||
                { cat "$scratch/build.log"; fail "$part is not said to be left out"; }
        done
        [[ $(grep -c 'is off: on FreeBSD' "$scratch/build.log") -eq 6 ]] || fail "more is left out"
        "$CMAKE" --build "$scratch/build" --target help >targets
        ! grep -E 'hakmem_(lua|py|wasm|preload|report|command)' targets || fail "these are of Linux"
        # pip would go on to a target that is not there.
        ! "$CMAKE" -S "$SOURCE" -B pip -DCMAKE_C_COMPILER="$CC" $(parts OFF) -DHAKMEM_BUILD_PYTHON=ON -DSKBUILD=2 "${system[@]}" \
            >pip.log 2>&1 || fail "pip's build goes on"
        grep -q 'hakmem: the Python package is for Linux, this is FreeBSD' pip.log || { cat pip.log; fail "pip's user is not told"; }
        # luarocks refuses by itself.
        grep -qx 'supported_platforms = { "linux" }' "$SOURCE/bindings/lua/hakmem-$VERSION-1.rockspec" || fail "the rock is for all systems"
        ;;
    aarch64_core)
        # The core's tests in C++, by qemu-user. Catch2 2 is one header, which Debian has for all systems.
        cross_linux aarch64
        needs_program aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
        [[ -e /usr/include/catch2/catch.hpp ]] || skip "no header of Catch2 2 (Debian package: catch2, of Debian 12)"
        mkdir catch
        ln -s /usr/include/catch2 catch/catch2
        cat >catch/Catch2Config.cmake <<'CMAKE'
set(Catch2_VERSION 2)
add_library(Catch2::Catch2 INTERFACE IMPORTED)
set_target_properties(Catch2::Catch2 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")
CMAKE
        CXX=aarch64-linux-gnu-g++ configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_TESTS=ON -DHAKMEM_WERROR=ON \
            "-DCMAKE_TOOLCHAIN_FILE=$SOURCE/cmake/toolchains/linux.cmake" -DHAKMEM_PROCESSOR=aarch64 \
            -DHAKMEM_TEST_LONG=OFF -DHAKMEM_TEST_LATER=OFF "-DCatch2_DIR=$PWD/catch"
        "$CMAKE" --build "$scratch/build" --parallel 2 --target core_tests test_cpp cpp_plain >build.log ||
            { tail -n 40 build.log; fail "build"; }
        ctest --test-dir "$scratch/build" --parallel 2 --output-on-failure --no-tests=error \
            -R "^(core_($(<"$scratch/build/tests/core_tests.txt"))|cpp_(header|plain))\$" || fail "tests under qemu"
        ;;
    aarch64_wasm)
        cross_aarch64
        run_by=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
        wasm_hosts -DCMAKE_TOOLCHAIN_FILE="$SOURCE/cmake/toolchains/linux.cmake"
        ;;
    clang_cl)
        # Objects of the core as clang-cl makes them, with MinGW's headers in place of Microsoft's, which are not to be had;
        # nothing is linked.
        headers=/usr/x86_64-w64-mingw32/include
        [[ -e $headers/windows.h ]] || skip "no headers of MinGW (Debian package: mingw-w64-common)"
        compiler=$(compgen -c clang-cl | sort -V | tail -n 1) || true
        [[ -n $compiler ]] || skip "no clang-cl (Debian package: clang-tools)"
        cat >toolchain.cmake <<CMAKE
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER $compiler)
set(CMAKE_C_COMPILER_TARGET x86_64-pc-windows-msvc)
set(CMAKE_C_COMPILER_WORKS 1)
set(CMAKE_SIZEOF_VOID_P 8)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(program RC_COMPILER MT LINKER)
    set(CMAKE_\${program} true)
endforeach()
CMAKE
        # ccache takes words of clang-cl for a file where the program's name has a version.
        unset CMAKE_C_COMPILER_LAUNCHER
        CC=$compiler configure "$scratch/build" $(parts ON) -DHAKMEM_BUILD_TESTS=OFF -DHAKMEM_WERROR=ON -DHAKMEM_CCACHE= \
            "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake" "-DCMAKE_C_FLAGS=/clang:-fgnuc-version=12.0.0 -imsvc $headers"
        [[ $(grep -c 'is off: on Windows' "$scratch/build.log") -eq 6 ]] || { cat "$scratch/build.log"; fail "parts for MinGW are not left out"; }
        "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_objects >build.log || { tail -n 40 build.log; fail "build"; }
        file=$(find "$scratch/build/core" -name 'alloc.c.obj')
        [[ $(od -A n -t x2 -N 2 "$file" | tr -d ' ') == 8664 ]] || fail "$file is no object for Windows"
        ;;
    windows_command)
        # jansson from its sources, for Debian has none for MinGW; what the command prints is what it prints here.
        needs_program x86_64-w64-mingw32-gcc-posix g++-mingw-w64-x86-64-posix
        wine=$(command -v wine64 || command -v wine) || skip "no wine (Debian package: wine64)"
        native=$TREE/bindings/report/hakmem
        [[ -x $native ]] || skip "the command hakmem was not built"
        CC=x86_64-w64-mingw32-gcc-posix
        toolchain=$SOURCE/cmake/toolchains/mingw-w64.cmake
        jansson_library "$toolchain"
        export PKG_CONFIG_LIBDIR=$PWD/prefix/lib/pkgconfig
        configure "$scratch/build" $(parts OFF) -DHAKMEM_BUILD_REPORT=ON -DHAKMEM_WERROR=ON "-DCMAKE_TOOLCHAIN_FILE=$toolchain" \
            "-DCMAKE_FIND_ROOT_PATH=$PWD/prefix" "-DHAKMEM_PACKAGES=$PACKAGES"
        grep -q "on Windows the command hakmem has no 'attach'" "$scratch/build.log" || fail "it is not said what the command lacks"
        "$CMAKE" --build "$scratch/build" --parallel 2 --target hakmem_command >build.log || { cat build.log; fail "build"; }
        export WINEPREFIX=$scratch/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY=
        "$wine" wineboot --init >wineboot.log 2>&1 || { cat wineboot.log; fail "wine makes no folder for itself"; }
        printf '#!/bin/sh\nexec %q %q "$@"\n' "$wine" "$scratch/build/bindings/report/hakmem.exe" >hakmem
        chmod +x hakmem
        PYTHONPATH=$here/../report python3 -c 'import copy, example, json
before = example.report()
after = copy.deepcopy(before)
for context in after["contexts"]:
    for stack in context.get("stacks", []):
        stack["live_bytes"] += 1234567
json.dump(before, open("before.json", "w"))
json.dump(after, open("after.json", "w"))'
        for words in "report before.json" "diff before.json after.json" "diff -b alloc before.json after.json" "folded after.json" \
            "speedscope after.json" "prometheus after.json" "html after.json" "html after.json before.json" "--version"; do
            # shellcheck disable=SC2086
            "$native" $words >wanted || fail "hakmem $words"
            # shellcheck disable=SC2086
            ./hakmem $words >found || fail "hakmem.exe $words: $?"
            cmp wanted found || fail "hakmem.exe $words prints something else"
        done
        ./hakmem html -o page.html after.json || fail "hakmem.exe html -o"
        cmp page.html <("$native" html after.json) || fail "the page in a file is another"
        HAKMEM_COMMAND=$PWD/hakmem python3 -B "$here/../report/test_diff.py" >diff.log 2>&1 || { tail -n 40 diff.log; fail "test_diff.py"; }
        status=0
        ./hakmem attach 1 2>said || status=$?
        [[ $status -eq 2 && $(wc -l <said) -eq 1 && $(<said) == *"there is no 'attach' on Windows"* ]] || fail "attach says $(<said)"
        timeout 120 wineserver -w || fail "wine's server does not end"
        ;;
    other_systems)
        find_zig
        "$SOURCE/scripts/amalgamate" .
        for target in x86_64-macos aarch64-macos x86_64-freebsd aarch64-windows-gnu; do
            cc=("${zig[@]}" cc -target $target)
            [[ $target == *windows* ]] || cc+=(-fPIC)
            "${cc[@]}" -std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Werror -I. -c hakmem.c -o $target.o ||
                fail "the core does not compile for $target"
            "${cc[@]}" -shared $target.o -o $target.library || fail "no library for $target"
            "${cc[@]}" "-I$SOURCE/core/include" "$here/../core/smoke.c" $target.o -o $target.program ||
                fail "no program for $target"
        done
        # The header of C++, for the library of C++ that zig has for each.
        for target in x86_64-macos aarch64-macos x86_64-freebsd aarch64-windows-gnu x86_64-linux-musl aarch64-linux-gnu; do
            "${zig[@]}" c++ -target $target -std=c++17 -O1 -Wall -Wextra -Werror -fno-exceptions -fno-rtti "-I$SOURCE/core/include" \
                "-I$SOURCE/bindings/cpp/include" -c "$here/../cpp/plain.cpp" -o plain.o || fail "no hakmem.hpp for $target"
        done
        ;;
    other_macos)
        # The bindings that macOS has, compiled and linked for both of its processors. Nothing here runs them.
        find_zig
        sources_of lupa
        luas=$(<place)/third-party
        reader_of_symbols
        for processor in x86_64 aarch64; do
            zig_for_macos $processor
            cd "$scratch/called-from/$processor"
            CC=$PWD/tools/cc AR=$PWD/tools/ar
            lua_library -O2 -DLUA_USE_MACOSX
            # Of the others the headers alone: what is linked with them, a host or an interpreter supplies.
            for pair in lua5.1="${LUA_SOURCE%/*}"/lua-5.1.5 lua5.2="${LUA_SOURCE%/*}"/lua-5.2.4 lua5.3="${LUA_SOURCE%/*}"/lua-5.3.6 \
                lua5.5="$luas/lua55" luajit="$luas/luajit21/src"; do
                printf 'Name: Lua\nDescription: Lua\nVersion: 0\nLibs:\nCflags: -I%s\n' "${pair#*=}" >"pkgconfig/${pair%%=*}.pc"
            done
            jansson_library "$PWD/toolchain.cmake"
            cp prefix/lib/pkgconfig/jansson.pc pkgconfig
            configure "$PWD/build" $(parts ON) -DHAKMEM_BUILD_TESTS=OFF -DHAKMEM_WERROR=ON \
                "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake" "-DHAKMEM_PACKAGES=$PACKAGES"
            # What there is not, each in one line.
            for part in PYTHON WASM PRELOAD BENCH; do
                [[ $(grep -c "hakmem: HAKMEM_BUILD_$part is off: on Darwin" build.log) -eq 1 ]] || fail "$part is not said to be off"
            done
            for part in "the Lua binding has no labels by call site" "libhakmem-report has no labels by call site" \
                "the command hakmem has no 'attach'"; do
                [[ $(grep -c "hakmem: on macOS $part" build.log) -eq 1 ]] || { cat build.log; fail "it is not said that $part"; }
            done
            targets=(hakmem_shared hakmem_report_static hakmem_report_shared hakmem_command haklua5.4)
            for name in luajit 51 52 53 54 55; do targets+=(hakmem_lua_$name); done
            for name in 51 52 53 54 55; do targets+=(hakmem_lua_module_$name); done
            "$CMAKE" --build build --parallel 2 --target "${targets[@]}" >make.log || { tail -n 60 make.log; fail "build"; }
            for file in build/core/libhakmem.dylib build/bindings/{host/libhakmem-report.dylib,report/hakmem,lua/haklua5.4} \
                build/bindings/lua/modules/5.{1,2,3,4,5}/hakmem.so; do
                is_mach_o $processor "$file" || fail "$file is no program or library of macOS for $processor"
            done
            # Names of call sites, as the program would find them in itself.
            "$reader" build/bindings/report/hakmem >names || fail "no names of functions"
            grep -q '^main ' names && grep -q '^hkr_write_text ' names || { cat names; fail "names are missing"; }
            "$reader" build/core/libhakmem.dylib >names || fail "no names of functions in a library"
            grep -q '^hak_alloc ' names || { cat names; fail "names of the library are missing"; }
            cd "$scratch/called-from"
        done
        ;;
    other_macos_rust)
        # The crates, their tests and examples, as far as a compiler gets without Apple's linker: the core is compiled by zig,
        # what is in Rust is checked.
        cargo=$(command -v cargo) || skip "no cargo (Debian packages: cargo, cargo-web)"
        find_zig
        rust_with_sources
        export CARGO_TARGET_DIR=$PWD/target RUSTFLAGS=-Dwarnings RUSTC_BOOTSTRAP=1
        for processor in x86_64 aarch64; do
            zig_for_macos $processor
            target=$processor-apple-darwin
            export "CC_${target//-/_}=$PWD/$processor/tools/cc" "AR_${target//-/_}=$PWD/$processor/tools/ar" \
                "CFLAGS_${target//-/_}=-Werror"
            for crates in rust rust/hakmem-adapters; do
                features=()
                [[ $crates == rust ]] || features=(--features lua)
                (cd "$SOURCE/bindings/$crates" && "$cargo" check --locked --quiet --all-targets "${features[@]}" -Zbuild-std \
                    --target $target) >cargo.log 2>&1 || { tail -n 60 cargo.log; fail "bindings/$crates for $target"; }
            done
            [[ -n $(find "target/$target" -name libhakmem.a) ]] || fail "no core for $target"
        done
        ;;
    *)
        fail "no such case"
        ;;
esac
