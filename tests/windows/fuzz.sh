#!/usr/bin/env bash
# fuzz.sh FOLDER OPERATIONS [SECONDS]: random operations against the shadow model for Windows, in wine, until as many were
# done: those of earlier runs, which FOLDER/operations has a line of, count. SECONDS: of one piece, 120 by default. Each
# piece has a seed of its own. Exit status 77: skipped, for the reason printed.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd) wanted=$2 seconds=${3:-120}
case=windows_fuzz
. "$source/tests/install/case.sh"
needs_program x86_64-w64-mingw32-g++-posix g++-mingw-w64-x86-64-posix
wine=$(command -v wine64 || command -v wine) || skip "no wine (Debian package: wine64)"
[[ -e /usr/include/catch2/catch.hpp ]] || skip "no Catch2 2 (Debian package: catch2)"
[[ $wanted =~ ^[1-9][0-9]*$ && $seconds =~ ^[1-9][0-9]*$ ]] || fail "numbers expected: fuzz.sh FOLDER OPERATIONS [SECONDS]"

mkdir -p "$folder/catch"
ln -sfn /usr/include/catch2 "$folder/catch/catch2"
parts=()
for part in LUA PYTHON WASM PRELOAD REPORT BENCH; do parts+=("-DHAKMEM_BUILD_$part=OFF"); done
cmake -S "$source" -B "$folder/build" "-DCMAKE_TOOLCHAIN_FILE=$source/cmake/toolchains/mingw-w64.cmake" \
    "-DHAKMEM_CATCH2=$folder/catch" "${parts[@]}" >"$folder/build.log" 2>&1 &&
    cmake --build "$folder/build" --parallel 2 --target fuzz_alloc >>"$folder/build.log" 2>&1 ||
    { tail -n 20 "$folder/build.log"; fail "the build"; }

export WINEPREFIX=$folder/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY=
# A version of the program has operations of its own.
program=$folder/build/tests/windows/fuzz_alloc.exe
sum=$(sha256sum <"$program")
[[ -e $folder/program && $(<"$folder/program") == "$sum" ]] || rm -f "$folder/operations"
echo "$sum" >"$folder/program"
touch "$folder/operations"
while true; do
    read -r pieces done < <(awk '{ n += $2 } END { printf "%d %.0f\n", NR, n }' "$folder/operations")
    ((done < wanted)) || break
    seed=$((pieces + 1))
    "$wine" "$program" "$seconds" $seed "$source"/tests/fuzz/corpus/alloc/* >"$folder/log" 2>&1 ||
        { cat "$folder/log"; fail "seed $seed, $seconds seconds; the input is in ${program}.last"; }
    count=$(tr -d '\r' <"$folder/log" | sed -n 's/^\([0-9]*\) operations$/\1/p')
    [[ -n $count && $count -gt 0 ]] || { cat "$folder/log"; fail "no operations"; }
    echo "$seed $count" >>"$folder/operations"
done
echo "$done operations in $pieces pieces"
