#!/usr/bin/env python3
"""The Python part of scripts/demo: a program with and without hakmem, its memory by part of the interpreter,
a limit, and a burst with its trim."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from driver import tool  # noqa: E402
from driver.show import WIDTH, add_build, add_number, bar, heading, pages, paint, profile  # noqa: E402

INDEX = ROOT / "examples/python/index.py"
WAYS = {
    "plain": None,
    "hakmem below pymalloc": {},
    "hakmem for all": {"all_domains": True},
    "hakmem for all, labels": {"all_domains": True, "labels": "native"},
}
LIMIT = """
import hakmem
try:
    keep = []
    while True:
        keep.append({"n": str(len(keep))})
except MemoryError as error:
    n = len(keep)
    del keep
live = hakmem.stats()["live_bytes"] / 2**20
print(f"MemoryError after {n:,} records; the program goes on, {live:.1f} MiB live")
"""


SQLITE = """
import sqlite3

def load(db, rows):
    db.execute("create table t (a integer, b text)")
    db.executemany("insert into t values (?, ?)", ((i, str(i) * 20) for i in range(rows)))

def index(db):
    db.execute("create index i on t (b)")

db = sqlite3.connect(":memory:")
load(db, {rows})
index(db)
cache = dict(db.execute("select a, b from t where a % 10 = 0"))
"""


def environment(package, settings):
    plain = {
        k: v for k, v in os.environ.items() if not k.startswith(("HAKMEM_", "PYTHON")) and k != "LD_PRELOAD"
    }
    plain.update(PYTHONPATH=str(package), PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    if settings is not None:
        from hakmem import _launch

        plain.update(_launch.settings(**settings))
    return plain


def run(command, env):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        tool.fail(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
    return done


def programs(args, measure):
    used = {way: [] for way in WAYS}
    printed = set()
    for _ in range(args.repetitions):
        for way, settings in WAYS.items():
            with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as result:
                command = [measure, result.name, sys.executable, INDEX, *args.work]
                printed.add(run(command, environment(args.package, settings)).stdout)
                used[way].append(json.load(result))
    if len(printed) != 1:
        tool.fail(f"different results: {printed}")
    print(f"  {printed.pop().strip()}\n")
    print("  Below pymalloc: large blocks, and arenas, of which pymalloc makes small ones. For all: each object.\n")
    base = used["plain"]
    print(f"  {'':<24} {'CPU s':>7} {'ratio':>6} {'peak MB':>9}")
    for way, runs in used.items():
        cpu = statistics.median(map(tool.cpu, runs))
        ratio = cpu / statistics.median(map(tool.cpu, base))
        peak = statistics.median(r["peak_kb"] for r in runs) / 1024
        print(f"  {way:<24} {cpu:>7.2f} {ratio:>6.2f} {peak:>9.1f}  {bar(ratio)}")


def report(args):
    command = [sys.executable, "-m", "hakmem", "run", "--all", "--labels", "native", INDEX, *args.work]
    lines = run(command, environment(args.package, None)).stderr.splitlines()
    table = next(i for i, line in enumerate(lines) if line.lstrip().startswith("label"))
    end = next(i for i, line in enumerate(lines[table:], table) if not line.strip())
    for line in [*lines[table : min(table + 13, end)], *lines[end:]]:
        # The line of what is resident is longer than a terminal is wide.
        at = line.rfind(", ", 0, WIDTH) + 1 if len(line) > WIDTH else 0
        print(f"{line[:at]}\n   {line[at:]}" if at else line)


def limit(args):
    command = [sys.executable, "-c", LIMIT]
    settings = {"all_domains": True, "limit": "64M"}
    print("  " + run(command, environment(args.package, settings)).stdout.strip())


def burst(args):
    print(f"  {'MiB of anonymous memory':<24} {'peak':>8} {'freed':>8} {'trimmed':>8}")
    for way, settings, more in (("plain", None, []), ("hakmem for all", {"all_domains": True}, ["trim"])):
        command = [sys.executable, HERE / "burst.py", args.records, *more]
        r = json.loads(run(command, environment(args.package, settings)).stdout)
        last = f"{r['trimmed']:>8.1f}  in {r['trim_ms']:.0f} ms" if more else f"{'-':>8}"
        print(f"  {way:<24} {r['peak']:>8.1f} {r['after']:>8.1f} {last}")


def sqlite(args):
    file = pages(args.build) / "python.json"
    script = file.with_name("sqlite.py")
    script.write_text(SQLITE.format(rows=args.records))
    settings = {"all_domains": True, "malloc": True, "labels": "native", "profile": "64K", "report": str(file)}
    if not (args.package / "hakmem/libhakmem_pymalloc.so").exists():
        print("  left out, this build has no malloc for Python")
        return
    run([sys.executable, script], environment(args.package, settings))
    profile(args.build, file, 6, "  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_build(parser)
    add_number(parser)
    parser.add_argument(
        "--quick", action="store_true", help="one repetition, 20 files, a tenth of the records"
    )
    args = parser.parse_args()
    args.package = args.build.resolve() / "bindings/python"
    args.repetitions, files, args.records = (1, 20, 15_000) if args.quick else (3, 100, 150_000)
    args.work = [sysconfig.get_path("stdlib"), str(files)]
    sys.path.insert(0, str(args.package))
    try:
        import hakmem  # noqa: F401
    except ImportError:
        print(
            paint("1", "\nPython: ")
            + "left out, no extension module for this Python in the build (python3-dev)"
        )
        return
    version = f"CPython {sys.version.split()[0]}"
    heading(args.number, "Python: a program that indexes the standard library", version)
    programs(args, args.build / "bench/lua/measure")
    heading(
        args.number + 1, "Where its memory is, exactly: by part of the interpreter, and its own label 'index'"
    )
    report(args)
    heading(args.number + 2, "A limit of 64 MiB")
    limit(args)
    heading(args.number + 3, f"{3 * args.records:,} records, of which {3 * args.records // 1000} stay")
    burst(args)
    heading(args.number + 4, "What sqlite takes from malloc, by the line of Python that called it", "--malloc --profile=64K")
    sqlite(args)


if __name__ == "__main__":
    main()
