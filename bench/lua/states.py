#!/usr/bin/env python3
"""Measures whole Lua states: fresh and small ones, clean-up after most records died, the end of a big one.

Every sample is a fresh process of the program lua_states_ENGINE on one CPU, in shuffled order; figures are
medians.
"""

import argparse
import json
import random
import statistics
import subprocess

import harness
from driver import tool

# measurement: title, allocators, count, columns (key, heading, format)
MEASUREMENTS = {
    "fresh": (
        "A fresh state with its libraries, {count} alive",
        ["builtin", "hak-shared", "hak-own"],
        500,
        [
            ("resident_kb", "resident KB", ".1f"),
            ("create_us", "create us", ".1f"),
            ("close_us", "close us", ".1f"),
            ("lua_kb", "Lua's count KB", ".1f"),
        ],
    ),
    "small": (
        "A state with 87 KiB live, {count} alive",
        ["builtin", "hak-shared", "hak-own"],
        300,
        [
            ("resident_kb", "resident KB", ".1f"),
            ("close_us", "close us", ".1f"),
            ("lua_kb", "Lua's count KB", ".1f"),
        ],
    ),
    "survivors": (
        "{count} records, all but each 1000th dropped, collected, trimmed",
        ["builtin", "hak-own"],
        1000000,
        [
            ("full_kb", "full KB", ".0f"),
            ("collected_kb", "collected KB", ".0f"),
            ("trimmed_kb", "trimmed KB", ".0f"),
            ("build_ms", "build ms", ".0f"),
            ("collect_ms", "collect ms", ".0f"),
            ("trim_ms", "trim ms", ".1f"),
        ],
    ),
    "teardown": (
        "The end of a state with {count} records",
        ["builtin", "hak-own", "hak-drop", "hak-drop-huge"],
        3500000,
        [
            ("full_mb", "heap MB", ".0f"),
            ("build_ms", "build ms", ".0f"),
            ("end_ms", "end ms", ".2f"),
            ("end_wall_ms", "end wall ms", ".2f"),
            ("left_mb", "left MB", ".2f"),
        ],
    ),
}
NAMES = {
    "builtin": "built-in, lua_close",
    "hak-shared": "hakmem, one space",
    "hak-own": "hakmem, a space each",
    "hak-drop": "hakmem, hak_lua_drop",
    "hak-drop-huge": "hakmem, hak_lua_drop, huge pages",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "measurements", nargs="*", metavar="measurement", help=", ".join(MEASUREMENTS) + "; default: all"
    )
    tool.add_build(parser, "bench/lua", "the programs were")
    parser.add_argument("--engines", metavar="LIST", help=", ".join(harness.ENGINES) + "; default: all")
    parser.add_argument("-n", type=int, default=5, help="repetitions (5)")
    parser.add_argument(
        "--quick", action="store_true", help="1 repetition with a fiftieth of the states and records"
    )
    tool.add_cpu(parser)
    tool.add_outputs(parser)
    args = parser.parse_args()
    args.measurements = tool.known(args.measurements, MEASUREMENTS, "measurement")
    if args.quick:
        args.n = 1
    if args.n < 1:
        tool.fail("-n must be at least 1")
    tool.check_outputs(args)
    return args


def collect(args, programs, counts):
    """samples[measurement][engine][allocator] = list of results."""
    jobs = [
        (name, engine, allocator)
        for name in args.measurements
        for engine in programs
        for allocator in MEASUREMENTS[name][1]
    ]
    samples = {}
    progress = tool.Progress(args.n * len(jobs))
    order = random.Random(1)
    for _ in range(args.n):
        for name, engine, allocator in order.sample(jobs, len(jobs)):
            progress.step(f"{name} {engine} {allocator}")
            command = [str(programs[engine]), name, allocator, str(counts[name])]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                tool.fail(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
            by_engine = samples.setdefault(name, {}).setdefault(engine, {})
            by_engine.setdefault(allocator, []).append(json.loads(done.stdout))
    progress.end()
    return samples


def tables(args, programs, samples, counts, form):
    for name in args.measurements:
        title, allocators, _, columns = MEASUREMENTS[name]
        rows = []
        for engine in programs:
            for allocator in allocators:
                runs = samples[name][engine][allocator]
                rows.append(
                    [f"{harness.ENGINES[engine]}: {NAMES[allocator]}"]
                    + [format(statistics.median(r[key] for r in runs), spec) for key, _, spec in columns]
                )
        yield (
            title.format(count=f"{counts[name]:,}"),
            form([""] + [heading for _, heading, _ in columns], rows),
        )


def main():
    args = arguments()
    programs = {}
    for engine in tool.selected(args.engines, harness.ENGINES, "engine"):
        found = tool.built(args.build, f"lua_states_{engine}")
        if found:
            programs[engine] = found
        elif args.engines:
            tool.fail(f"{engine}: no lua_states_{engine} in {args.build}; build it first")
    if not programs:
        tool.fail(f"no programs in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build")
    counts = {name: count // 50 if args.quick else count for name, (_, _, count, _) in MEASUREMENTS.items()}
    about = harness.description(tool.pin(args.cpu), programs, args.build)
    samples = collect(args, programs, counts)
    for title, table in tables(args, programs, samples, counts, tool.plain_table):
        print(f"{title}\n{table}\n")
    if args.markdown:
        parts = [f"{harness.caption(about)} Medians of {args.n}; times are CPU time unless wall is said."]
        parts += [
            f"### {title}\n\n{table}"
            for title, table in tables(args, programs, samples, counts, tool.markdown_table)
        ]
        tool.write_markdown(args.markdown, "\n\n".join(parts))
    if args.json:
        tool.write_json(args.json, about, repetitions=args.n, counts=counts, samples=samples)


if __name__ == "__main__":
    main()
