#!/bin/sh
# nginx_lua.sh FOLDER: Debian's Lua module for nginx with its libraries, unpacked there; installed, they would take the
# place of the LuaJIT that the binding is built with. Exit status 77 where they cannot be had.
set -eu
test -e "$1/whole" && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "no apt-get on this machine"; exit 77; }
rm -rf "$1"
mkdir -p "$1"
cd "$1"
apt-get -q download libnginx-mod-http-lua libnginx-mod-http-ndk libluajit2-5.1-2 libluajit2-5.1-common lua-resty-core \
    lua-resty-lrucache libpcre3 >log 2>&1 || { tail -n 1 log; exit 77; }
for package in *.deb; do
    dpkg -x "$package" .
done
touch whole
