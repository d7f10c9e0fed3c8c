#!/usr/bin/env bash
# run.sh case crates target-folder cargo
# Exit status 77: skipped, for the reason printed.
set -euo pipefail
here=$(realpath "${BASH_SOURCE[0]}")
case=$1 crates=$2 cargo=${4:-}
export CARGO_TARGET_DIR=$3 RUSTFLAGS=-Dwarnings RUST_BACKTRACE=0
cd "$crates"

skip() {
    echo "$case: skipped: $1"
    exit 77
}
if [[ -z $cargo || $cargo == *-NOTFOUND ]]; then
    skip "no cargo (Debian packages: cargo, cargo-web)"
fi
version=$("$cargo" --version | sed 's/cargo 1\.\([0-9]*\).*/\1/')
wanted=$(sed -n 's/^rust-version = "1\.\(.*\)"/\1/p' Cargo.toml)
# wasmtime asks for the latest compilers, and compiles with some before them: they are not refused here.
[[ $case == wasmtime || $case == server || $version -ge $wanted ]] || skip "$("$cargo" --version) is older than 1.$wanted"
"$cargo" fetch --locked --quiet 2>"$3.log" || { cat "$3.log"; skip "cargo could not fetch the dependencies"; }

case $case in
    test)
        "$cargo" test --locked --offline --quiet --features hakmem-sys/wasm
        ;;
    example)
        output=$("$cargo" run --locked --offline --quiet --release --example tenants)
        echo "$output"
        [[ $(grep -c '5000 words' <<<"$output") -eq 2 ]] || exit 1
        grep -q 'over its limit after [0-9][0-9]* words' <<<"$output"
        output=$("$cargo" run --locked --offline --quiet --release --example queries)
        echo "$output"
        [[ $(grep -c '20000 groups' <<<"$output") -eq 7 ]] || exit 1
        grep -q 'query 3: cancelled' <<<"$output"
        ;;
    pairs)
        "$cargo" build --locked --offline --quiet --release --example pairs_global --example pairs_scoped \
            --example pairs_threads
        status=0
        python3 "$(dirname "$here")/test_pairs.py" "$CARGO_TARGET_DIR/release/examples" || status=$?
        exit "$status"
        ;;
    tsan)
        # ThreadSanitizer has to see the standard library too, or what its locks order looks like a race.
        sysroot=$("$cargo" +nightly rustc -Zunstable-options --print sysroot 2>/dev/null) || sysroot=
        [[ -d $sysroot/lib/rustlib/src/rust/library ]] ||
            skip "no nightly Rust with its sources (rustup component add rust-src --toolchain nightly)"
        command -v clang >/dev/null || skip "no clang"
        CC=clang CFLAGS="-fsanitize=thread -g" RUSTFLAGS="-Zsanitizer=thread" \
            "$cargo" +nightly test -Zbuild-std --locked --quiet --target x86_64-unknown-linux-gnu -p hakmem --test scope \
            -- --test-threads=1
        ;;
    adapters)
        "$cargo" test --locked --offline --quiet --features lua,quickjs
        ;;
    wasmtime)
        [[ -s $HAKMEM_GUEST ]] || exit 1
        "$cargo" test --locked --offline --quiet --ignore-rust-version
        ;;
    server)
        "$cargo" build --locked --offline --quiet --ignore-rust-version --example server
        python3 "$(dirname "$here")/test_server.py" "$CARGO_TARGET_DIR/debug/examples/server" "$HAKMEM_GUEST"
        ;;
    other)
        # What there is not for another system is said before a compiler for it is looked for.
        mkdir -p "$CARGO_TARGET_DIR"
        says() { # line, arguments for cargo
            ! "$cargo" check --locked --offline --quiet -p hakmem-sys "${@:2}" 2>"$CARGO_TARGET_DIR/said" || exit 1
            [[ $(grep -c '^ *hakmem: ' "$CARGO_TARGET_DIR/said") -eq 1 ]] && grep -q "^ *$1\$" "$CARGO_TARGET_DIR/said" ||
                { cat "$CARGO_TARGET_DIR/said"; exit 1; }
        }
        says "hakmem: the feature wasm is for Linux, this is macos" --features wasm --target aarch64-apple-darwin
        says "hakmem: the feature wasm is for Linux, this is windows" --features wasm --target x86_64-pc-windows-gnu
        says "hakmem: the core needs gcc or clang: on Windows a target .*-windows-gnu, or CC=clang-cl" --target x86_64-pc-windows-msvc
        ;;
    package)
        # The packages have the C sources as files, and build outside of the tree. Until hakmem-sys is published, cargo
        # 1.84 and later would look for it in the index.
        "$cargo" package --locked --offline --quiet --allow-dirty \
            --config "patch.crates-io.hakmem-sys.path=\"$crates/hakmem-sys\"" 2>&1
        tar -tzf "$CARGO_TARGET_DIR"/package/hakmem-sys-*.crate >"$CARGO_TARGET_DIR/files"
        grep -q '/core/src/api/alloc.c$' "$CARGO_TARGET_DIR/files"
        grep -q '/wasm-host/src/tenant.c$' "$CARGO_TARGET_DIR/files"
        grep -q '/common/smaps.c$' "$CARGO_TARGET_DIR/files"
        ;;
    *)
        echo "no such case"
        exit 1
        ;;
esac
