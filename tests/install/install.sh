#!/usr/bin/env bash
# install.sh build-tree prefix: installs into an emptied prefix.
set -euo pipefail
tree=$1 prefix=$2
rm -rf "$prefix"
"$CMAKE" --install "$tree" --prefix "$prefix"
