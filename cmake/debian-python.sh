#!/bin/sh
# debian-python.sh VERSION PLACE: CPython VERSION of Debian's unstable release, with its headers, tests and libraries, in
# the folder `unpacked` of the current one, to be moved to PLACE. By apt with lists and a state of its own, so that the
# machine's settings stay as they are. The C library of this machine may be older: the interpreter gets the path of the
# loader and of the libraries that come with it.
set -eu
version=$1 place=$2
command -v patchelf >/dev/null || { echo "no patchelf (scripts/setup installs it)" >&2; exit 1; }
mkdir -p lists/partial cache/archives/partial state unpacked
: >state/status
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian unstable main" >list
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$PWD/list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=/dev/null \
        -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State="$PWD/state" -o Dir::State::Lists="$PWD/lists" \
        -o Dir::State::status="$PWD/state/status" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}
apt update
apt -y --no-install-recommends --download-only install \
    "python$version-venv" "libpython$version-dev" "libpython$version-testsuite" libstdc++6 >/dev/null
for package in cache/archives/*.deb; do
    dpkg -x "$package" unpacked
done
cd unpacked
python=usr/bin/python$version
loader=$(patchelf --print-interpreter "$python")
libraries=$(cd usr/lib/*-linux-gnu && pwd)
folder=usr/lib/${libraries##*/}
rm -f "$folder"/libpython*.a
patchelf --set-interpreter "$place/$folder/${loader##*/}" --force-rpath --set-rpath "$place/$folder" "$python"
# Debian's header only names the one in the folder of the architecture.
cp "usr/include/${libraries##*/}/python$version/pyconfig.h" "usr/include/python$version/pyconfig.h"
sed -i "s#\([\"']\)/usr/#\1$place/usr/#" "usr/lib/python$version"/_sysconfigdata_*.py \
    "usr/lib/python$version"/_sysconfig_vars_*.json
"$folder/${loader##*/}" --library-path "$folder" "$python" -E -S -m compileall -q -p "$place" \
    -x '/(test|idlelib)/' "usr/lib/python$version" >/dev/null || true
