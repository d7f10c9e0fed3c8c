#!/usr/bin/env bash
# setup.sh source: scripts/demo needs no more than 45 packages beyond a Debian system with build-essential and cmake, as
# apt counts them for a machine that has nothing. Exit status 77: skipped, for the reason printed.
set -euo pipefail
source=$1
most=45

apt-get --version >/dev/null 2>&1 || { echo "skipped: this is not Debian"; exit 77; }
# The packages that apt would install, sorted.
plan() {
    LC_ALL=C apt-get -o Dir::State::status=/dev/null -o Debug::NoLocking=1 --simulate install --no-install-recommends "$@" 2>&1 |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' | sort
}
first=$(plan '?essential' apt build-essential cmake)
[[ -n $first ]] || { echo "skipped: apt has no lists of packages (apt-get update)"; exit 77; }
mapfile -t needed < <("$source/scripts/setup" --list demo)
[[ ${#needed[@]} -gt 10 ]] || { echo "scripts/setup --list demo prints ${needed[*]}"; exit 1; }
more=$(comm -13 <(echo "$first") <(plan '?essential' apt build-essential cmake "${needed[@]}"))
count=$(wc -l <<<"$more")
echo "$count packages:" $more
((count > ${#needed[@]} && count <= most)) || { echo "more than $most, or too few to be all"; exit 1; }
