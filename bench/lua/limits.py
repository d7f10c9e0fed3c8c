#!/usr/bin/env python3
"""Measures the smallest limit with which programs run: of a state of hakmem, and of a lua_Alloc on malloc that counts
the bytes that Lua asks for.

The programs are those of programs/, small, so that the heaps have some hundred KiB to some MiB. Figures are bytes: the
speed of the machine does not matter. They are medians, since Lua hashes strings by a number that each state draws.
"""

import argparse
import json
import statistics
import subprocess

import harness
from driver import tool

# program: its scales
PROGRAMS = {
    "text": [0.02, 0.2],
    "template": [0.02],
    "parser": [0.02],
    "json": [0.02],
    "words": [0.02],
    "lru": [0.02],
    "events": [0.02],
    "pipeline": [0.02],
    "trees": [0.005],
}
ALLOCATORS = ["counting", "hakmem"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("programs", nargs="*", metavar="program", help=", ".join(PROGRAMS) + "; default: all")
    tool.add_build(parser, "bench/lua", "the programs were")
    parser.add_argument("--engines", metavar="LIST", help=", ".join(harness.ENGINES) + "; default: lua5.4")
    parser.add_argument("-n", type=int, default=5, help="repetitions (5)")
    parser.add_argument("--at-most", type=float, metavar="SHARE", help="fail if the mean of the shares is above")
    args = parser.parse_args()
    args.programs = tool.known(args.programs, PROGRAMS, "program")
    return args


def smallest(program, allocator, script, scale):
    """Returns the bytes of the smallest limit."""
    command = [str(program), allocator, str(harness.HERE / "programs" / f"{script}.lua"), str(scale)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        tool.fail(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["limit_bytes"]


def measure(program, scripts, repetitions):
    """Prints a row for each script and scale; returns the shares."""
    rows, shares = [], []
    for script in scripts:
        for scale in PROGRAMS[script]:
            counted, limit = (
                statistics.median(smallest(program, a, script, scale) for _ in range(repetitions)) for a in ALLOCATORS
            )
            shares.append(limit / counted)
            rows.append([f"{script} {scale}", f"{counted / 1024:.0f}", f"{limit / 1024:.0f}", f"{shares[-1]:.3f}"])
    rows.append(["mean", "", "", f"{sum(shares) / len(shares):.3f}"])
    print(tool.plain_table(["", "counting, KiB", "hakmem, KiB", "share"], rows))
    return shares


def main():
    args = arguments()
    for engine in tool.selected(args.engines or "lua5.4", harness.ENGINES, "engine"):
        program = tool.built(args.build, f"lua_limits_{engine}")
        if not program:
            tool.fail(f"{engine}: no lua_limits_{engine} in {args.build}; build it first")
        print(f"{harness.ENGINES[engine]}: the smallest limit with which a program runs")
        shares = measure(program, args.programs, args.n)
        if args.at_most and sum(shares) / len(shares) > args.at_most:
            tool.fail(f"the mean share is above {args.at_most}")


if __name__ == "__main__":
    main()
