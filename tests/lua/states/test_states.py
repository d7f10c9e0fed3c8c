#!/usr/bin/env python3
"""Instructions to make and to close a Lua state with its libraries, against those of the runtime's own allocator.

test_states.py PROGRAM ROW... with rows kind:what:share, for example hakmem:close:0.45: at most that share of what the
built-in allocator takes. Counts of callgrind, so that the machine does not matter."""
import functools
import re
import shutil
import subprocess
import sys

SKIP = 77
COUNT = 60


@functools.lru_cache(maxsize=None)
def instructions(program, kind, what):
    """Returns the thousands of instructions that a state takes. Several rows ask for the built-in allocator's."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               f"--toggle-collect={what}_states", program, kind, str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return int(found[1]) / COUNT / 1000


def main():
    program, *rows = sys.argv[1:]
    if not shutil.which("valgrind"):
        sys.exit(SKIP)
    failed = False
    for row in rows:
        kind, what, share = row.split(":")
        ours = instructions(program, kind, what)
        theirs = instructions(program, "builtin", what)
        bad = ours > float(share) * theirs
        failed |= bad
        print(f"{'TOO MANY' if bad else 'ok'}: {kind} {what} {ours:.1f}, built-in {theirs:.1f} thousand: "
              f"{ours / theirs:.3f} of at most {share}")
    sys.exit(1 if failed else 0)


main()
