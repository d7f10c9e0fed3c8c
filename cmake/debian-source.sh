#!/bin/sh
# debian-source.sh PACKAGE VERSION FILE: brings one file of a Debian source package into the current folder, by apt with
# lists of its own, so that the machine's settings stay as they are.
set -eu
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p apt/lists/partial apt/cache/archives/partial
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" >apt/list
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$PWD/apt/list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/apt/lists" \
        -o Dir::Cache="$PWD/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
apt update
apt source --download-only "$1=$2"
mv "$3" apt/
rm -f ./*.*
mv "apt/$3" .
rm -rf apt
