#!/usr/bin/env python3
"""Runs the Lua programs of this folder under several allocators and compares CPU time and peak memory.

Every sample is a fresh process on one CPU. Within a repetition the order of engines, programs and
allocators is shuffled; a figure is the median of the ratios to the runtime's own allocator in the same
repetition. What a program prints must be the same under every allocator.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

PROGRAMS = sorted(p.stem for p in (harness.HERE / "programs").glob("*.lua"))
# name of the variant: host that it needs, options of the host
VARIANTS = {
    "builtin": ("builtin", []),
    "hak": ("hak", []),
    "labels": ("hak", ["--labels"]),
    "mimalloc": ("mimalloc", []),
}
BASE = "builtin"
MEASURES = {"cpu_s": "CPU", "peak_kb": "peak RSS"}


def sample(measure, host, options, script, scale):
    """One run: what it printed and what it used."""
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as result:
        command = [str(measure), result.name, str(host), *options, str(script), str(scale)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            harness.fail(f"{' '.join(command[2:])}: exit status {done.returncode}\n{done.stderr}")
        used = json.load(result)
    return done.stdout, {"cpu_s": used["user_s"] + used["sys_s"], "peak_kb": used["peak_kb"]}


def collect(args, hosts, variants):
    """samples[engine][program][variant] = list of what the repetitions used."""
    samples = {e: {p: {v: [] for v in variants} for p in args.programs} for e in hosts}
    printed = {}
    progress = harness.Progress(args.n * len(hosts) * len(args.programs) * len(variants))
    order = random.Random(args.seed)
    for _ in range(args.n):
        pairs = [(e, p) for e in hosts for p in args.programs]
        order.shuffle(pairs)
        for engine, program in pairs:
            for variant in order.sample(variants, len(variants)):
                host_name, options = VARIANTS[variant]
                script = harness.HERE / "programs" / f"{program}.lua"
                progress.step(f"{engine} {program} {variant}")
                text, used = sample(
                    args.build / "measure", hosts[engine][host_name], options, script, args.scale
                )
                expected = printed.setdefault(program, text)
                if text != expected:
                    harness.fail(
                        f"{program} under {engine}, {variant}, printed {text!r}; before {expected!r}"
                    )
                samples[engine][program][variant].append(used)
    progress.end()
    return samples


def ratios(runs, variant, measure, repetitions):
    return statistics.median(runs[variant][i][measure] / runs[BASE][i][measure] for i in repetitions)


def interval(samples, variant, measure, n):
    """95 % interval of the geometric mean, by drawing repetitions again."""
    draw = random.Random(1)
    means = []
    for _ in range(400):
        chosen = draw.choices(range(n), k=n)
        means.append(harness.geomean([ratios(runs, variant, measure, chosen) for runs in samples.values()]))
    means.sort()
    return means[10], means[-11]


def tables(samples, variants, n, form):
    others = [v for v in variants if v != BASE]
    header = ["program", "CPU s"] + others + ["peak MB"] + others
    parts = []
    for engine, by_program in samples.items():
        rows = []
        for program, runs in by_program.items():
            row = [program]
            for measure, unit in (("cpu_s", 1), ("peak_kb", 1024)):
                median = statistics.median(r[measure] for r in runs[BASE]) / unit
                row.append(f"{median:.3f}" if unit == 1 else f"{median:.1f}")
                row += [f"{ratios(runs, v, measure, range(n)):.2f}" for v in others]
            rows.append(row)
        for label, chosen in (("geomean", None), ("95 % interval", interval)):
            row = [label]
            for measure in MEASURES:
                row.append("")
                for v in others:
                    if chosen:
                        low, high = chosen(by_program, v, measure, n)
                        row.append(f"{low:.3f}-{high:.3f}")
                    else:
                        row.append(f"{geomean_of(by_program, v, measure, n):.3f}")
            rows.append(row)
        parts.append((engine, form(header, rows)))
    return parts


def geomean_of(by_program, variant, measure, n):
    return harness.geomean([ratios(runs, variant, measure, range(n)) for runs in by_program.values()])


def summary(samples, variants, n):
    """The medians and geomeans of the tables, for the result file."""
    result = {}
    for engine, by_program in samples.items():
        result[engine] = {}
        for v in variants:
            if v == BASE:
                continue
            result[engine][v] = {
                measure: {
                    "geomean": geomean_of(by_program, v, measure, n),
                    "programs": {p: ratios(r, v, measure, range(n)) for p, r in by_program.items()},
                }
                for measure in MEASURES
            }
    return result


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="Programs: " + ", ".join(PROGRAMS)
    )
    parser.add_argument("programs", nargs="*", metavar="program", help="default: all")
    parser.add_argument(
        "--build",
        type=Path,
        default=harness.HERE.parents[1] / "build/release/bench/lua",
        metavar="DIR",
        help="where the hosts were built (build/release/bench/lua)",
    )
    parser.add_argument(
        "--engines", metavar="LIST", help=", ".join(harness.ENGINES) + "; default: all that are built"
    )
    parser.add_argument(
        "--variants",
        metavar="LIST",
        help=", ".join(VARIANTS) + "; default: all that are built; builtin is always run",
    )
    parser.add_argument("-n", type=int, default=9, help="repetitions (9)")
    parser.add_argument("--scale", type=float, default=1, help="work of the programs (1)")
    parser.add_argument("--quick", action="store_true", help="3 repetitions at a tenth of the work")
    parser.add_argument("--cpu", type=int, help="CPU to run on (the last one)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the tables there as Markdown, between the marks of this tool if the file exists",
    )
    args = parser.parse_args()
    for program in args.programs:
        if program not in PROGRAMS:
            harness.fail(f"unknown program '{program}'; there are {', '.join(PROGRAMS)}")
    args.programs = args.programs or PROGRAMS
    if args.quick:
        args.n, args.scale = 3, 0.1
    if args.n < 1 or args.scale <= 0:
        harness.fail("-n must be at least 1 and --scale above 0")
    return args


def main():
    args = arguments()
    asked = harness.selected(args.variants, VARIANTS, "variant")
    if BASE not in asked:
        asked.insert(0, BASE)
    hosts, left_out = {}, set()
    for engine in harness.selected(args.engines, harness.ENGINES, "engine"):
        found = {h: harness.built(args.build, f"lua_host_{engine}_{h}") for h, _ in VARIANTS.values()}
        if not found[BASE]:
            if args.engines:
                harness.fail(f"{engine}: no lua_host_{engine}_builtin in {args.build}; build it first")
            continue
        hosts[engine] = found
        left_out |= {v for v in asked if not found[VARIANTS[v][0]]}
    if not hosts:
        harness.fail(f"no hosts in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build")
    if args.variants and left_out:
        harness.fail(f"not built in {args.build}: {', '.join(sorted(left_out))}")
    variants = [v for v in asked if v not in left_out]
    if left_out:
        print(f"not built, left out: {', '.join(sorted(left_out))}", file=sys.stderr)

    about = harness.description(harness.pin(args.cpu), hosts, args.build)
    samples = collect(args, hosts, variants)
    for engine, table in tables(samples, variants, args.n, harness.plain_table):
        print(f"{harness.ENGINES[engine]}: ratios to its own allocator, medians of {args.n}\n{table}\n")
    if args.markdown:
        parts = [
            f"{harness.caption(about)} Medians of {args.n} repetitions; "
            "ratios are to the runtime's own allocator."
        ]
        for engine, table in tables(samples, variants, args.n, harness.markdown_table):
            parts.append(f"### {harness.ENGINES[engine]}\n\n{table}")
        harness.write_markdown(args.markdown, "\n\n".join(parts))
    if args.json:
        harness.write_json(
            args.json,
            about,
            repetitions=args.n,
            scale=args.scale,
            ratios=summary(samples, variants, args.n),
            samples=samples,
        )


if __name__ == "__main__":
    main()
