#!/usr/bin/env python3
"""test_pairs.py FOLDER: counts the instructions that an allocation and its free cost in the heap of a program, in
a scope, outside of one, and in one scope of eight threads. FOLDER has the examples pairs_global, pairs_scoped
and pairs_threads."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAIRS = 40_000  # of each thread, and twice as many
# Scopes may cost so many instructions a pair beyond the heap of the program, about 2 ns. It is 8 with Rust 1.95.
MOST = 10
THREADS = 8


def instructions(program, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, *map(str, arguments)],
            capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{program}: {done.stderr[-2000:]}")
    return int(found.group(1))


def per_pair(program, *arguments, threads=1):
    few, many = (instructions(program, n, *arguments) for n in (PAIRS, 2 * PAIRS))
    return (many - few) / (PAIRS * threads)


def main():
    if not shutil.which("valgrind"):
        print("skipped: no valgrind")
        return 77
    folder = pathlib.Path(sys.argv[1])
    base = per_pair(folder / "pairs_global")
    inside = per_pair(folder / "pairs_scoped")
    outside = per_pair(folder / "pairs_scoped", "outside")
    shared = per_pair(folder / "pairs_threads", THREADS, threads=THREADS)
    print(f"instructions a pair: program {base:.1f}, in a scope {inside:.1f}, outside of one {outside:.1f}, "
          f"in a scope of {THREADS} threads {shared:.1f}")
    return 0 if max(inside, outside, shared) <= base + MOST else 1


if __name__ == "__main__":
    sys.exit(main())
