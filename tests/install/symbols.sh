#!/usr/bin/env bash
# symbols.sh nm static-library [shared-library]
# The library has no writable and no thread-local data, and defines no name but hak_* and hk_*; what the
# shared one exports is hak_*, and it needs libc alone.
set -euo pipefail
nm=$1 archive=$2 shared=${3:-}
bad=0

complain() { # what, lines
    [[ -z $2 ]] && return
    echo "symbols: $1:"
    echo "$2" | sed 's/^/    /'
    bad=1
}

defined=$("$nm" --defined-only --format=posix "$archive" | grep -v ':$')
[[ -n $defined ]] || { echo "symbols: nm finds no symbol in $archive"; exit 1; }
complain "writable data (nm types b B d D C and their small or weak kin)" \
    "$(awk '$2 ~ /^[bBdDCcgGsSuvV]$/ { print $2, $1 }' <<<"$defined")"
complain "thread-local data" "$(readelf --wide --symbols "$archive" | awk '$4 == "TLS" { print $8 }')"
complain "global names other than hak_* and hk_*" \
    "$(awk '$2 ~ /^[A-Z]$/ && $1 !~ /^hak_|^hk_/ { print $2, $1 }' <<<"$defined")"

if [[ -n $shared ]]; then
    # Each has the version of the soname; the version itself is an absolute symbol.
    version=HAKMEM_$(readelf --dynamic "$shared" | sed -n 's/.*SONAME.*\[libhakmem\.so\.\(.*\)\]/\1/p')
    complain "exported names other than hak_* of $version" \
        "$("$nm" --dynamic --defined-only --format=posix "$shared" |
            awk -v v="$version" '$1 !~ "^hak_[a-z0-9_]*@@" v "$" && $1 !~ "^" v "(@@" v ")?$" { print $2, $1 }')"
    complain "libraries other than libc" \
        "$(readelf --dynamic "$shared" | awk '/NEEDED/ && !/\[libc\.so/ { print $NF }')"
fi
exit $bad
