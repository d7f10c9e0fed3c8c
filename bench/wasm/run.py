#!/usr/bin/env python3
"""Measures WebAssembly runtimes with their own memory management and with hakmem's.

Every sample is a fresh process. Within a repetition the order is shuffled; a figure is the median of the
repetitions, a ratio the median of the ratios within repetitions. 'best own' is the runtime's best setting of
its own in that row.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from driver import machine, tool  # noqa: E402

# The programs of a runtime: they may differ in how the runtime itself is built.
RUNTIMES = {"wasmtime": ["wasm_bench_wasmtime"], "wamr": ["wasm_bench_wamr_own", "wasm_bench_wamr"]}
TENANTS = ("hak-tenants", "hak-heap")  # in the rows that are marked
OURS = "hak"  # variants that begin so; the rest is the runtime's own


@dataclass(frozen=True)
class Row:
    title: str
    guest: str
    row: str
    figure: str  # of the program's line
    count: dict  # work, by runtime
    more_is_better: bool = False
    threads: int = 1
    tenants: bool = False  # also with a tenant for each instance


def both(n, wamr=None):
    return {"wasmtime": n, "wamr": wamr or n}


ROWS = {
    "cycle": Row("create + request + destroy, CPU us", "small", "cycle", "cpu_us", both(4000), tenants=True),
    "empty": Row(
        "create + empty call + destroy, CPU us", "small", "empty", "cpu_us", both(6000), tenants=True
    ),
    "rate1": Row("requests in new instances per s, 1 thread", "small", "rate1", "per_s", both(8000), True),
    "rate2": Row(
        "requests in new instances per s, 2 threads", "small", "rate2", "per_s", both(8000), True, 2
    ),
    "empty1": Row("new instances per s, 1 thread", "small", "empty1", "per_s", both(10000), True),
    "empty2": Row("new instances per s, 2 threads", "small", "empty2", "per_s", both(10000), True, 2),
    "grow": Row("memory.grow by a page, CPU us", "small", "grow", "cpu_us", both(100)),
    "reset-small": Row("isolated request, small guest, CPU us", "small", "isolate", "cpu_us", both(4000)),
    "reset-qjs": Row("isolated request, QuickJS, CPU us", "quickjs", "isolate", "cpu_us", both(400, 60)),
    "reset-big": Row("isolated request, 16 MiB of state, CPU us", "big", "isolate", "cpu_us", both(400, 200)),
    "ready-qjs": Row(
        "the same, QuickJS stored initialised, CPU us", "quickjs-ready", "isolate", "cpu_us", both(400)
    ),
    "ready-big": Row(
        "the same, 16 MiB stored initialised, CPU us", "big-ready", "isolate", "cpu_us", both(400)
    ),
}
# Rows whose samples give several figures.
LIVE = {
    "rss_kb": "resident KiB each",
    "mappings": "mappings each",
    "left_mb": "resident MiB left after closing",
    "close_us": "CPU us to close one",
}
SEVERAL = {"live": LIVE, "many": {"live": "instances live at once", "rss_kb": "resident KiB each"}}
GOALS = (
    # runtime, row, hakmem's variant, what it is held against ("best own", another variant, a figure), factor,
    # at most or at least
    ("wasmtime", "rate1", "hak", "best own", 0.95, "least"),
    ("wasmtime", "rate2", "hak", "best own", 0.95, "least"),
    ("wasmtime", "cycle", "hak", "best own", 0.85, "most"),
    ("wasmtime", "empty", "hak", "best own", 0.85, "most"),
    ("wasmtime", "grow", "hak", "best own", 1, "most"),
    ("wasmtime", "reset-small", "hak", "best own", 0.35, "most"),
    ("wasmtime", "live.left_mb", "hak", "pooling-keep-256K", 1 / 3, "most"),
    ("wasmtime", "live.left_mb", "hak", 64, 1, "most"),
    ("wasmtime", "reset-qjs", "hak", 100, 1, "most"),
    ("wasmtime", "reset-big", "hak", 30, 1, "most"),
    ("wasmtime", "empty", "hak-tenants", "hak", 1.05, "most"),
    ("wamr", "rate2", "hak", "default", 2.5, "least"),
    ("wamr", "cycle", "hak", "default", 0.7, "most"),
    ("wamr", "empty", "hak-tenants", "hak", 1.05, "most"),
    ("wamr", "live.rss_kb", "hak", "best own", 1, "most"),
    ("wamr", "live.close_us", "hak", "best own", 1, "most"),
    ("wamr", "many.live", "hak", 40000, 1, "least"),
)


def sample(program, build, row, variant, count, threads):
    command = [str(program), str(build / f"{row.guest}.wasm"), row.row, variant, str(count)]
    cpus = sorted(os.sched_getaffinity(0))
    chosen = cpus[-1:] if threads == 1 else cpus
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, chosen)
    )
    if done.returncode != 0:
        tool.fail(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def plan(args, runtime, variants):
    """(key, row, variant) of every sample of a repetition."""
    jobs = []
    for key in args.rows:
        if key == "live":
            row = Row("", "small", "live", "", both(args.live))
            chosen = [v for v in variants if v not in TENANTS]
        elif key == "many":
            # With guards of 4 GiB each there is no address space for them.
            row = Row("", "small", "many", "", both(args.many))
            chosen = [v for v in variants if v == "hak" and runtime == "wamr"]
        else:
            row = ROWS[key]
            chosen = [v for v in variants if v not in TENANTS or row.tenants]
            if key.startswith("ready") and runtime != "wasmtime":
                chosen = []
            if not key.startswith(("reset", "ready")):
                chosen = [v for v in chosen if not v.startswith("pooling-keep") or v == "pooling-keep-256K"]
        jobs += [(key, row, variant) for variant in chosen]
    return jobs


def collect(args, runtime, variants):
    """samples[key][variant] = list of what the program printed."""
    samples = {}
    order = random.Random(args.seed)
    jobs = plan(args, runtime, variants)
    progress = tool.Progress(args.n * len(jobs))
    for _ in range(args.n):
        for key, row, variant in order.sample(jobs, len(jobs)):
            progress.step(f"{runtime} {key} {variant}")
            count = max(2, round(row.count[runtime] * (1 if key in SEVERAL else args.scale)))
            used = sample(variants[variant], args.build, row, variant, count, row.threads)
            samples.setdefault(key, {}).setdefault(variant, []).append(used)
    progress.end()
    return samples


def figures(samples, key, figure):
    """Medians by variant."""
    return {v: statistics.median(s[figure] for s in runs) for v, runs in samples[key].items()}


def all_figures(samples):
    result = {}
    for key in (k for k in (*ROWS, *SEVERAL) if k in samples):
        if key in SEVERAL:
            for figure in SEVERAL[key]:
                result[f"{key}.{figure}"] = figures(samples, key, figure)
        else:
            result[key] = figures(samples, key, ROWS[key].figure)
    return result


def best_own(key, medians):
    own = {v: m for v, m in medians.items() if not v.startswith(OURS)}
    more = key in ROWS and ROWS[key].more_is_better
    return (max if more else min)(own, key=own.get) if own else None


def ratio(samples, key, figure, variant, base):
    pairs = zip(samples[key][variant], samples[key][base], strict=True)
    return statistics.median(a[figure] / b[figure] for a, b in pairs if b[figure])


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def table(samples, variants, form, args):
    header = ["", *variants, "hak / best own"]
    rows = []
    for key, medians in all_figures(samples).items():
        source, _, figure = key.partition(".")
        if figure:
            title = f"{args.live if source == 'live' else args.many:,} live: {SEVERAL[source][figure]}"
        else:
            title = ROWS[key].title
        best = best_own(key, medians)
        compared = ""
        if OURS in medians and best and medians[best] > 0.005:
            compared = f"{ratio(samples, source, figure or ROWS[key].figure, OURS, best):.2f}"
        rows.append([title, *(number(medians[v]) if v in medians else "" for v in variants), compared])
    used = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return form([header[i] for i in used], [[row[i] for i in used] for row in rows])


def goals(args, runtime, samples):
    """Lines: met or missed."""
    medians = all_figures(samples)
    lines = []
    for of, key, variant, against, factor, sense in GOALS:
        if args.quick and key == "many.live":
            continue
        if of != runtime or key not in medians or variant not in medians[key]:
            continue
        if isinstance(against, str):
            base = best_own(key, medians[key]) if against == "best own" else against
            if base not in medians[key]:
                continue
            limit, words = medians[key][base] * factor, f"{factor:.2f} x {base}"
        else:
            limit, words = against, f"{against}"
        value = medians[key][variant]
        met = value <= limit if sense == "most" else value >= limit
        lines.append(
            {
                "goal": f"{runtime} {key}: {variant} at {sense} {words}",
                "value": value,
                "limit": limit,
                "met": met,
            }
        )
    return lines


def arguments():
    names = [*ROWS, *SEVERAL]
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="Rows: " + ", ".join(names)
    )
    parser.add_argument("rows", nargs="*", metavar="row", help="default: all")
    tool.add_build(parser, "bench/wasm", "the programs were")
    parser.add_argument(
        "--runtimes", metavar="LIST", help=", ".join(RUNTIMES) + "; default: all that are built"
    )
    parser.add_argument("--variants", metavar="LIST", help="default: all; wasm_bench_* --version lists them")
    parser.add_argument("-n", type=int, default=7, help="repetitions (7)")
    parser.add_argument("--scale", type=float, default=1, help="work of the rows (1)")
    parser.add_argument("--live", type=int, default=1000, help="instances of the row 'live' (1000)")
    parser.add_argument("--many", type=int, default=40000, help="instances of the row 'many' (40000)")
    parser.add_argument("--quick", action="store_true", help="one repetition at a twentieth of the work")
    tool.add_seed(parser)
    tool.add_outputs(parser)
    args = parser.parse_args()
    args.rows = tool.known(args.rows, names, "row")
    if args.quick:
        args.n, args.scale, args.live, args.many = 1, 0.05, 100, 1000
    if args.n < 1 or args.scale <= 0 or min(args.live, args.many) < 1:
        tool.fail("-n, --live and --many must be at least 1 and --scale above 0")
    tool.check_outputs(args)
    return args


def main():
    args = arguments()
    variants, versions, known = {}, {}, set()
    asked = args.variants.split(",") if args.variants else None
    for runtime in tool.selected(args.runtimes, RUNTIMES, "runtime"):
        found = [p for p in (tool.built(args.build, name) for name in RUNTIMES[runtime]) if p]
        if len(found) < len(RUNTIMES[runtime]):
            if args.runtimes:
                tool.fail(
                    f"{runtime}: not all of {', '.join(RUNTIMES[runtime])} in {args.build}; build them first"
                )
            continue
        variants[runtime] = {}
        for program in found:
            versions[runtime], *names = machine.output(str(program), "--version").splitlines()
            known.update(names)
            variants[runtime].update({name: program for name in names if asked is None or name in asked})
    if not variants:
        tool.fail(f"no programs in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build")
    if asked and not set(asked) <= known:
        tool.fail(f"unknown variants: {', '.join(set(asked) - known)}; there are {', '.join(sorted(known))}")
    for row in list(args.rows):
        if row in ROWS and not (args.build / f"{ROWS[row].guest}.wasm").exists():
            print(f"no {ROWS[row].guest}.wasm in the build, row {row} is left out", file=sys.stderr)
            args.rows.remove(row)

    about = tool.about(versions)
    parts, results = [], {}
    for runtime in variants:
        samples = collect(args, runtime, variants[runtime])
        met = goals(args, runtime, samples)
        results[runtime] = {"medians": all_figures(samples), "goals": met, "samples": samples}
        print(f"{versions[runtime]}: medians of {args.n}")
        print(table(samples, variants[runtime], tool.plain_table, args), end="\n\n")
        for goal in met:
            word = "met   " if goal["met"] else "MISSED"
            print(f"{word} {goal['goal']}: {number(goal['value'])}, goal {number(goal['limit'])}")
        print()
        parts.append(
            f"### {versions[runtime]}\n\n" + table(samples, variants[runtime], tool.markdown_table, args)
        )
    if args.markdown:
        where = about["machine"]
        caption = (
            f"`{about['command']}`, {about['date'][:10]}, {about['versions']['revision']}, {where['cpu']}, "
            f"{where['cpus']} CPUs, Linux {where['kernel'].split('-')[0]}. "
            f"Medians of {args.n} repetitions."
        )
        tool.write_markdown(args.markdown, "\n\n".join([caption, *parts]))
    if args.json:
        tool.write_json(args.json, about, repetitions=args.n, scale=args.scale, **results)


if __name__ == "__main__":
    main()
