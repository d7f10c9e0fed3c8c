#!/bin/sh
# check_symbols.sh NM LIBRARY: fails when the library has writable or thread-local data, or a global name
# that begins neither with hak_ nor with hk_.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: check_symbols.sh NM LIBRARY" >&2
    exit 2
fi
symbols=$("$1" "$2")
if ! printf '%s\n' "$symbols" | grep -q ' T hak_alloc$'; then
    echo "$2: no hak_alloc in it; not the library" >&2
    exit 1
fi
bad=$(printf '%s\n' "$symbols" | awk '
    $(NF - 1) ~ /^[bBdDCsSgG]$/ { print "writable data: " $0 }
    $(NF - 1) ~ /^[TRVWi]$/ && $NF !~ /^(hak|hk)_/ { print "foreign global name: " $0 }')
# nm shows thread-local symbols as b, B, d or D too, or as TLS in the ELF symbol table.
if [ -n "$bad" ]; then
    printf '%s\n' "$bad" >&2
    exit 1
fi
