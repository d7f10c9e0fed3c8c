#!/bin/sh
# debian-source.sh PACKAGE FILE LISTS: brings one file of a Debian source package into the current folder, by apt with
# lists of its own in the folder LISTS, so that the machine's settings stay as they are. By the name of the upstream's
# archive, which point releases keep, not by the version of the package.
set -eu
lists=$3
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$lists/partial" cache/archives/partial
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" >list
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$PWD/list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$lists" \
        -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
apt update
# A line: 'URI' FILE BYTES SHA256:HASH
line=$(apt --print-uris source "$1" | grep -F " $2 ") || { echo "apt has no $2 of $1 for $release" >&2; exit 1; }
rm -rf list cache
uri=${line#\'}
/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "${uri%%\'*}" "$2" "${line##* }"
