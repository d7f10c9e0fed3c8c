#!/usr/bin/env bash
# native.sh folder
# The core on the system where this runs, with a C compiler ($CC, or cc) and Python ($PYTHON, or python3) alone: it compiles
# as one file without warnings, its smoke test runs, and the system's table keeps the contract of hak_os.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
cd "$1"
"${PYTHON:-python3}" "$tests/../scripts/amalgamate" .
compile=("${CC:-cc}" -O2 -Wall -Wextra -Werror -I.)
"${compile[@]}" -std=c11 -Wpedantic -Wconversion -c hakmem.c -o hakmem.o
"${compile[@]}" "-I$tests/../core/include" "$tests/core/smoke.c" hakmem.o -pthread -o smoke
"${compile[@]}" "-I$tests/../core/include" "-I$tests/support" "$tests/core/contract.c" "$tests/support/contract.c" hakmem.o \
    -pthread -o contract
for program in smoke contract; do
    "./$program" || { echo "$program: status $?"; exit 1; }
    echo "$program: as it should be"
done
