#!/usr/bin/env python3
"""What `python -m hakmem run` and its report add to a program that does nothing: time, processor time, memory.

The variants take turns, in another order in each repetition; a figure is the median of the differences to the plain
interpreter of the same repetition. The interpreter is the one that runs this script; it must be able to import hakmem.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from driver import machine, tool  # noqa: E402
from run import environment  # noqa: E402

# It prints its own peak: that of wait4 is also of this process, which it was before exec.
CODE = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
PROGRAM = ["-c", CODE]
EMPTY = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-4], *sys.argv[1:]])"
ALL = {"all_domains": True}
# what goes before or in place of the program, settings of hakmem
VARIANTS = {
    "plain": (PROGRAM, {}),
    "`python -m` of a module that does `exec` alone": (["-m", "empty", *PROGRAM], {}),
    "`run --all --report ''`": (["-m", "hakmem", "run", "--all", "--report", "", *PROGRAM], {}),
    "`run --all`": (["-m", "hakmem", "run", "--all", *PROGRAM], {}),
    "by `env --all`": (PROGRAM, ALL),
    "by `env --all --report -`": (PROGRAM, {**ALL, "report": "-"}),
    "by `env --all --report FILE`": (PROGRAM, {**ALL, "report": "r.json"}),
    "by `env --all --labels site`": (PROGRAM, {**ALL, "labels": "site"}),
    "by `env --all --labels site --report -`": (PROGRAM, {**ALL, "labels": "site", "report": "-"}),
}


def sample(flags, arguments, env):
    """Milliseconds, of them on a processor, and the program's peak of resident memory in KiB."""
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.POSIX_SPAWN_OPEN, 1, "peak", written, 0o600), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    begun = time.perf_counter()
    child = os.posix_spawn(sys.executable, [sys.executable, *flags, *arguments], env, file_actions=files)
    _, status, used = os.wait4(child, 0)
    elapsed = time.perf_counter() - begun
    if status != 0:
        tool.fail(f"{' '.join(arguments)} ended with status {status}")
    return elapsed * 1e3, (used.ru_utime + used.ru_stime) * 1e3, int(Path("peak").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=60, help="repetitions (60)")
    parser.add_argument("--no-site", action="store_true", help="without the start-up files of this machine (-S)")
    args = parser.parse_args()
    flags = ["-S"] if args.no_site else []
    samples = {name: [] for name in VARIANTS}
    order = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="hakmem-start-") as folder:
        os.chdir(folder)
        Path("empty.py").write_text(EMPTY)
        prepared = {name: environment(settings) for name, (_, settings) in VARIANTS.items()}
        for _ in range(args.n):
            for name in order.sample(list(VARIANTS), len(VARIANTS)):
                samples[name].append(sample(flags, VARIANTS[name][0], prepared[name]))
        os.chdir("/")
    print(f"{machine.brief()['cpu']}, CPython {sys.version.split()[0]}, medians of {args.n} repetitions\n")
    print("| | ms | CPU ms | peak KiB |\n|---|---:|---:|---:|")
    for name, runs in samples.items():
        if name == "plain":
            figures = map(statistics.median, zip(*runs, strict=True))
            print("| plain | {:.1f} | {:.1f} | {:.0f} |".format(*figures))
            continue
        pairs = zip(runs, samples["plain"], strict=True)
        more = [[a - b for a, b in zip(run, plain, strict=True)] for run, plain in pairs]
        figures = map(statistics.median, zip(*more, strict=True))
        print("| {} | {:+.1f} | {:+.1f} | {:+.0f} |".format(name, *figures))


if __name__ == "__main__":
    main()
