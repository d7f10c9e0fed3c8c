#!/usr/bin/env python3
"""How often verdicts on the growth of programs in Lua are right: runs those of verdicts.lua, and prints a table.

A leak is found if a verdict "leak" names a line that keeps what it makes. Each other verdict "leak" is blamed wrongly.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import harness  # noqa: F401  (where driver is)
from driver import tool

PROGRAMS = Path(__file__).resolve().parent / "verdicts.lua"
KEEPS = {n for n, line in enumerate(PROGRAMS.read_text().splitlines(), 1) if line.endswith("-- keeps")}
LAUNCHERS = {"lua5.4": "haklua5.4", "luajit": "hakluajit"}


def run(args, engine, rate, *arguments):
    launcher = str(args.build / LAUNCHERS[engine])
    command = [launcher, f"--hak-profile=/dev/null,{rate}", "--hak-profile-window=off", str(PROGRAMS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tool.fail(f"{engine} {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def score(args, engine, rate):
    """The leaks, how many were found, how many verdicts were wrong, and harmless programs with one of these."""
    leaks = found = wrong = alarms = 0
    for kind, name in sorted(run(args, engine, rate)):
        blamed = [v for v in run(args, engine, rate, name) if v[0] == "leak"]
        right = [v for v in blamed if kind == "leak" and int(v[1]) in KEEPS]
        leaks += kind == "leak"
        found += bool(right)
        wrong += len(blamed) - len(right)
        alarms += kind == "clean" and bool(blamed)
        if args.verbose:
            for v in blamed:
                if v not in right:
                    print(f"{engine} {rate} {name}: blamed: {' '.join(v)}")
            if kind == "leak" and not right:
                print(f"{engine} {rate} {name}: not found")
    return leaks, found, wrong, alarms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the folder of the launchers")
    parser.add_argument("--engines", nargs="+", choices=LAUNCHERS, default=list(LAUNCHERS))
    parser.add_argument("--rates", nargs="+", default=["lines", "exact", "16K"])
    parser.add_argument("--recall", type=float, default=0, help="fail below this")
    parser.add_argument("--precision", type=float, default=0, help="fail below this")
    parser.add_argument("-v", "--verbose", action="store_true", help="say which verdicts are wrong")
    args = parser.parse_args()
    good = True
    print("| runtime | profile | leaks | found | blamed wrongly | harmless programs with an alarm | recall | precision |")
    print("|---|---|---|---|---|---|---|---|")
    for engine in args.engines:
        for rate in args.rates:
            leaks, found, wrong, alarms = score(args, engine, rate)
            recall, precision = found / leaks, found / max(1, found + wrong)
            print(f"| {engine} | {rate} | {leaks} | {found} | {wrong} | {alarms} | {recall:.2f} | {precision:.2f} |", flush=True)
            good = good and recall >= args.recall and precision >= args.precision
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
