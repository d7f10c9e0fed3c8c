#!/usr/bin/env bash
# native.sh folder
# The Lua binding, libhakmem-report and the command on the system where this runs, with the Lua 5.4 and the jansson that
# pkg-config finds: they compile without warnings, and do what they do on each system. $LUA: the interpreter of that Lua, for
# the module. Lines and stacks, which not all systems have, are not looked at. Also for bash 3.2.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$1"
mkdir -p "$1"
cd "$1"
fail() {
    echo "native.sh: $1"
    exit 1
}
off=()
for part in TESTS PYTHON WASM PRELOAD BENCH; do off+=("-DHAKMEM_BUILD_$part=OFF"); done
cmake -S "$here/../.." -B build -DHAKMEM_WERROR=ON "${off[@]}" ${CC:+"-DCMAKE_C_COMPILER=$CC"} \
    ${PACKAGES:+"-DHAKMEM_PACKAGES=$PACKAGES"} >configure.log 2>&1 || { cat configure.log; fail "cmake"; }
grep 'hakmem: on ' configure.log || true
cmake --build build --parallel 2 --target hakmem_report_static haklua5.4 hakmem_lua_module_54 hakmem_command >build.log 2>&1 ||
    { tail -n 60 build.log; fail "build"; }

cat >script.lua <<'LUA'
local t = {}
for i = 1, 2000 do t[i] = { tostring(i), function() return i end } end
print(#t)
LUA
launcher=build/bindings/lua/haklua5.4
[[ $("$launcher" --hak-report --hak-limit=64M script.lua 2>report) == 2000 ]] || { cat report; fail "the launcher"; }
for label in table closure string; do
    [[ $(awk -v l=$label '$1 == l { print $3 }' report) -ge 2000 ]] || { cat report; fail "label $label"; }
done
"$launcher" --hak-limit=8M -e 'local t = {} for i = 1, 1e7 do t[i] = {} end' 2>said && fail "the limit does not hold"
grep -q 'not enough memory' said || { cat said; fail "the limit"; }
"$launcher" --hak-profile=profile.json,1K script.lua >/dev/null || fail "a profile"

cat >module.lua <<'LUA'
local hakmem = require "hakmem"
local t = {}
for i = 1, 2000 do t[i] = {} end
assert(hakmem.labels().table.live_blocks >= 2000 and hakmem.stats().live_bytes > 0)
LUA
LUA_CPATH="$PWD/build/bindings/lua/modules/5.4/?.so" "${LUA:-lua5.4}" module.lua || fail "the module"

command=build/bindings/report/hakmem
"$command" report profile.json >text || fail "hakmem report"
grep -qw closure text || { cat text; fail "the text of the report"; }
"$command" diff profile.json profile.json >/dev/null || fail "hakmem diff"
"$command" folded profile.json >folded || fail "hakmem folded"
[[ -s folded ]] || fail "no stacks"
if "$command" --help | grep -q '^  html'; then
    "$command" html profile.json >page.html || fail "hakmem html"
    grep -q hakmem-report/1 page.html || fail "the page lacks the report"
fi

"${CC:-cc}" -O2 -Wall -Wextra -Werror "-I$here/../../core/include" "-I$here/../../bindings/host/include" "$here/../windows/host.c" \
    build/bindings/host/libhakmem-report.a build/core/libhakmem.a -pthread -o host
./host >out || { cat out; fail "a host"; }
echo "native.sh: Lua, libhakmem-report and the command are as they should be"
