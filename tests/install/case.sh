# What the scripts of this folder that take a case have in common. $case is its name.
fail() {
    echo "$case: $1"
    exit 1
}
skip() {
    echo "$case: skipped: $1"
    exit 77
}
needs_program() { # program, Debian package
    command -v "$1" >/dev/null || skip "no program $1${2:+ (Debian package: $2)}"
}
