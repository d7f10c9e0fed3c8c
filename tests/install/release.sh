#!/usr/bin/env bash
# release.sh case source scratch-folder: scripts/release in a clone of the tree as it is, and what it makes, tried from
# the folder that it makes alone. Exit status 77: skipped, for the reason printed.
set -euo pipefail
case=$1 source=$2 scratch=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/case.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

needs_program git git
# What makes these is tried by tests of its own: install_deb, install_rock, python_wheel, rust_package.
if [[ $case =~ ^(wheels|debian|crates|rock)$ && ${HAKMEM_SUITES:-} != all ]]; then
    skip "takes minutes; HAKMEM_SUITES=all tries it, as scripts/test long does"
fi
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
export GIT_CONFIG_GLOBAL=/dev/null
mkdir clone
tar -C "$source" --exclude=./build --exclude=./.git --exclude=__pycache__ -c . | tar -C clone -x
(cd clone && git -c init.defaultBranch=main init -q && git add -A && git commit -q -m sources)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' clone/pyproject.toml)

release() { # arguments; the files are in out/
    rm -rf out
    clone/scripts/release --try out "$@" >log 2>&1 || { cat log; fail "scripts/release fails"; }
    (cd out && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS"
    [[ $(ls out | grep -vc SHA256SUMS) -eq $(wc -l <out/SHA256SUMS) ]] || fail "SHA256SUMS has not all files"
}
# Exit status 1, one line, and no folder.
refuses() { # part of the line, arguments
    local said=$1 status=0
    shift
    clone/scripts/release "$@" >refused 2>&1 || status=$?
    [[ $status -eq 1 && $(wc -l <refused) -eq 1 ]] || { cat refused; fail "status $status where '$said' is wrong"; }
    grep -qF -- "$said" refused || fail "says $(cat refused), not '$said'"
}
commit() {
    git -C clone commit -q -a -m changed
}

case $case in
    refuses)
        sed -i "0,/^## \[.*/s//## [$version] - unreleased/" clone/CHANGELOG.md
        git -C clone commit -q -a --allow-empty -m unreleased
        refuses "unknown part 'rpm'" out rpm
        refuses "begins with '## [$version] - unreleased'" out source
        mkdir out
        touch out/old
        refuses "out is not an empty folder" --try out source
        rm -rf out
        echo >>clone/README.md
        refuses "not committed; the first:  M README.md" --try out source
        git -C clone checkout -q README.md
        sed -i 's/^version = .*/version = "9.9.9"/' clone/pyproject.toml
        commit
        refuses "pyproject.toml does not have the version of hakmem.h: version = \"$version\"" --try out source
        git -C clone reset -q --hard HEAD^
        sed -i "0,/^## \[.*/s//## [$version] - 2026-12-01/" clone/CHANGELOG.md
        commit
        clone/scripts/release out source >log 2>&1 || { cat log; fail "a version with a date"; }
        first=$(cat out/SHA256SUMS)
        rm -rf out
        clone/scripts/release out source >log 2>&1
        [[ $(cat out/SHA256SUMS) == "$first" ]] || fail "the same commit gives another archive"
        # A folder of sources alone, below no clone.
        tar -x -z -f "out/hakmem-$version.tar.gz"
        mv "hakmem-$version" clone-no
        GIT_DIR=/nonexistent clone-no/scripts/release --try more source >refused 2>&1 && fail "a release of no commit"
        [[ $(cat refused) == "release: this is no clone: a release is made from a commit" ]] || fail "$(cat refused)"
        ;;
    source)
        release source
        tar -x -z -f "out/hakmem-$version.tar.gz"
        cmake -S "hakmem-$version" -B build -DCMAKE_BUILD_TYPE=Debug -DHAKMEM_BUILD_TESTS=OFF -DHAKMEM_BUILD_LUA=OFF \
            -DHAKMEM_BUILD_PYTHON=OFF -DHAKMEM_BUILD_WASM=OFF -DHAKMEM_BUILD_PRELOAD=OFF -DHAKMEM_BUILD_REPORT=OFF \
            -DHAKMEM_BUILD_BENCH=OFF >log
        cmake --build build >log || { cat log; fail "the archive does not build"; }
        cmake --install build --prefix "$scratch/prefix" >log
        export PKG_CONFIG_PATH=$scratch/prefix/lib/pkgconfig
        # shellcheck disable=SC2046
        cc "hakmem-$version/examples/embed.c" $(pkg-config --cflags --libs hakmem) -o embed
        LD_LIBRARY_PATH=$scratch/prefix/lib ./embed >/dev/null || fail "embed"
        ;;
    onefile)
        release onefile
        tar -x -z -f "out/hakmem-$version-onefile.tar.gz"
        [[ $(ls "hakmem-$version-onefile" | tr '\n' ' ') == "LICENSE hakmem.c hakmem.h " ]] || fail "$(ls "hakmem-$version-onefile")"
        mkdir hakmem
        cp "hakmem-$version-onefile/hakmem.h" hakmem
        cc -std=c11 -O1 -I. "$source/examples/embed.c" "hakmem-$version-onefile/hakmem.c" -o embed
        ./embed >/dev/null || fail "embed"
        ;;
    crates)
        needs_program cargo cargo
        release crates
        for crate in out/*.crate; do tar -x -z -f "$crate"; done
        # A program that knows the two crates by their files alone.
        mkdir -p program/src
        cat >program/Cargo.toml <<TOML
[package]
name = "program"
version = "1.0.0"
edition = "2021"
[dependencies]
hakmem = { path = "../hakmem-$version" }
[patch.crates-io]
hakmem-sys = { path = "../hakmem-sys-$version" }
TOML
        cat >program/src/main.rs <<'RUST'
fn main() {
    let heap = hakmem::Context::new().expect("a heap");
    let space = hakmem::Space::new().expect("a space");
    let other = hakmem::Context::with_options(hakmem::Options::new().space(&space)).expect("another heap");
    println!("{} {}", heap.stats().live_blocks, other.stats().live_blocks);
}
RUST
        (cd program && cargo run --quiet >../printed 2>../log) || { cat log; fail "a program with the crates"; }
        [[ $(cat printed) == "0 0" ]] || fail "prints $(cat printed)"
        ;;
    rock)
        needs_program luarocks luarocks
        release rock
        (cd out && luarocks --lua-version 5.4 --tree "$scratch/tree" install "hakmem-$version-1.src.rock" >../log 2>&1) ||
            { tail log; fail "luarocks install"; }
        eval "$(luarocks --lua-version 5.4 --tree "$scratch/tree" path)"
        [[ $(lua5.4 -e 'print(require("hakmem").stats().live_bytes > 0)') == true ]] || fail "require"
        ;;
    wheels)
        name=$(python3 -c 'import sys, sysconfig; print(sysconfig.get_config_var("LDVERSION"))')
        release "wheel-$name"
        wheel=(out/hakmem-"$version"-cp*-manylinux_*.whl)
        [[ ${#wheel[@]} -eq 1 && -e ${wheel[0]} ]] || fail "$(ls out)"
        python3 -m venv env
        env/bin/pip install --quiet --disable-pip-version-check --no-index "${wheel[0]}"
        [[ $(cd / && env -u PYTHONPATH "$scratch/env/bin/python" -m hakmem run --all -c \
            'import hakmem; print(hakmem.status()["obj"])') == replaced ]] || fail "the wheel"
        ;;
    debian)
        needs_program dpkg-shlibdeps dpkg-dev
        needs_program file file
        release debian
        for package in out/*.deb; do dpkg-deb -x "$package" root; done
        export PKG_CONFIG_PATH=$scratch/root/usr/lib/pkgconfig
        # shellcheck disable=SC2046
        cc "$source/examples/embed.c" $(pkg-config --cflags --libs hakmem) -o embed
        LD_LIBRARY_PATH=$scratch/root/usr/lib ./embed >/dev/null || fail "embed"
        [[ ! -x root/usr/bin/hakmem || $(root/usr/bin/hakmem --version) == *"$version"* ]] || fail "the command hakmem"
        ;;
    *)
        fail "no such case"
        ;;
esac
