#!/usr/bin/env python3
"""Runs the Python programs of this folder under hakmem and beside it, and compares CPU time and peak memory.

Every sample is a fresh process on one CPU. Within a repetition the order of programs and variants is
shuffled; a figure is the median of the ratios to the plain interpreter in the same repetition. What a program
prints must be the same in every variant. The interpreter is the one that runs this script; it must be able to
import hakmem.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lua"))

import harness  # noqa: E402

try:
    from hakmem import _launch
except ImportError:
    harness.fail("this Python has no hakmem: install it, or set PYTHONPATH=build/release/bindings/python")

PROGRAMS = sorted(p.stem for p in (HERE / "programs").glob("*.py"))
BASE = "default"
# name of the variant: settings of hakmem, or what goes before the script
VARIANTS = {
    BASE: ({}, []),
    "raw": ({"all_domains": False}, []),
    "all": ({"all_domains": True}, []),
    "native": ({"all_domains": True, "labels": "native"}, []),
    "site": ({"all_domains": True, "labels": "site"}, []),
    "tracemalloc": ({}, ["-X", "tracemalloc"]),
    "memray": ({}, ["-m", "memray", "run", "-q", "--trace-python-allocators", "-f", "-o", "/dev/null"]),
}
MEASURES = {"cpu_s": "CPU", "peak_kb": "peak RSS"}


def environment(settings):
    plain = {
        k: v for k, v in os.environ.items() if not k.startswith(("HAKMEM_", "PYTHON")) and k != "LD_PRELOAD"
    }
    plain["PYTHONHASHSEED"] = "0"
    if "PYTHONPATH" in os.environ:
        plain["PYTHONPATH"] = os.environ["PYTHONPATH"]
    if settings:
        plain.update(_launch.settings(**settings))
    return plain


def sample(measure, variant, program, scale):
    """One run: what it printed and what it used."""
    settings, before = VARIANTS[variant]
    script = str(HERE / "programs" / f"{program}.py")
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as result:
        command = [str(measure), result.name, sys.executable, *before, script, str(scale)]
        done = subprocess.run(command, env=environment(settings), capture_output=True, text=True)
        if done.returncode != 0:
            harness.fail(f"{' '.join(command[2:])}: exit status {done.returncode}\n{done.stderr}")
        used = json.load(result)
    return done.stdout, {"cpu_s": used["user_s"] + used["sys_s"], "peak_kb": used["peak_kb"]}


def collect(args, variants):
    """samples[program][variant] = list of what the repetitions used."""
    samples = {p: {v: [] for v in variants} for p in args.programs}
    printed = {}
    progress = harness.Progress(args.n * len(args.programs) * len(variants))
    order = random.Random(args.seed)
    for _ in range(args.n):
        for program in order.sample(args.programs, len(args.programs)):
            for variant in order.sample(variants, len(variants)):
                progress.step(f"{program} {variant}")
                text, used = sample(args.build / "measure", variant, program, args.scale)
                expected = printed.setdefault(program, text)
                if text != expected:
                    harness.fail(f"{program}, {variant}, printed {text!r}; before {expected!r}")
                samples[program][variant].append(used)
    progress.end()
    return samples


def ratio(runs, variant, measure, repetitions):
    return statistics.median(runs[variant][i][measure] / runs[BASE][i][measure] for i in repetitions)


def geomean_of(samples, variant, measure, repetitions):
    return harness.geomean([ratio(runs, variant, measure, repetitions) for runs in samples.values()])


def interval(samples, variant, measure, n):
    """95 % interval of the geometric mean, by drawing repetitions again."""
    draw = random.Random(1)
    means = sorted(geomean_of(samples, variant, measure, draw.choices(range(n), k=n)) for _ in range(400))
    return means[10], means[-11]


def table(samples, variants, n, form):
    others = [v for v in variants if v != BASE]
    rows = []
    for program, runs in samples.items():
        row = [program]
        for measure, unit, digits in (("cpu_s", 1, 3), ("peak_kb", 1024, 1)):
            row.append(f"{statistics.median(r[measure] for r in runs[BASE]) / unit:.{digits}f}")
            row += [f"{ratio(runs, v, measure, range(n)):.3f}" for v in others]
        rows.append(row)
    for label in ("geomean", "95 % interval"):
        row = [label]
        for measure in MEASURES:
            row.append("")
            for v in others:
                if label == "geomean":
                    row.append(f"{geomean_of(samples, v, measure, range(n)):.3f}")
                else:
                    row.append("{:.3f}-{:.3f}".format(*interval(samples, v, measure, n)))
        rows.append(row)
    return form(["program", "CPU s", *others, "peak MB", *others], rows)


def summary(samples, variants, n):
    return {
        v: {
            measure: {
                "geomean": geomean_of(samples, v, measure, range(n)),
                "programs": {p: ratio(runs, v, measure, range(n)) for p, runs in samples.items()},
            }
            for measure in MEASURES
        }
        for v in variants
        if v != BASE
    }


def available(variant):
    if variant != "memray":
        return True
    return subprocess.run([sys.executable, "-c", "import memray"], capture_output=True).returncode == 0


def about(cpu):
    import datetime
    import shlex

    import hakmem

    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join(["bench/python/run.py"] + sys.argv[1:]),
        "machine": {
            "cpu": harness.first_line("/proc/cpuinfo", "model name"),
            "cpus": os.cpu_count(),
            "pinned_to": cpu,
            "kernel": platform.release(),
            "thp": harness.first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        },
        "versions": {
            "revision": harness.output("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
            "python": f"CPython {platform.python_version()} ({platform.python_build()[1]}, {sys.prefix})",
            "hakmem": hakmem.take_snapshot().report["hakmem"],
        },
    }


def caption(where):
    machine, versions = where["machine"], where["versions"]
    thp = machine["thp"].partition("[")[2].partition("]")[0]
    return (
        f"`{where['command']}`, {where['date'][:10]}, hakmem {versions['hakmem']} ({versions['revision']}), "
        f"CPython {platform.python_version()}, {machine['cpu']}, Linux {machine['kernel'].split('-')[0]}, THP {thp}."
    )


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="Programs: " + ", ".join(PROGRAMS)
    )
    parser.add_argument("programs", nargs="*", metavar="program", help="default: all")
    parser.add_argument(
        "--build",
        type=Path,
        default=HERE.parents[1] / "build/release/bench/lua",
        metavar="DIR",
        help="where `measure` was built (build/release/bench/lua)",
    )
    parser.add_argument(
        "--variants", metavar="LIST", help=", ".join(VARIANTS) + f"; default: all; {BASE} is always run"
    )
    parser.add_argument("-n", type=int, default=7, help="repetitions (7)")
    parser.add_argument("--scale", type=float, default=1, help="work of the programs (1)")
    parser.add_argument("--quick", action="store_true", help="3 repetitions at a fifth of the work")
    parser.add_argument("--cpu", type=int, help="CPU to run on (the last one)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the table there as Markdown, between the marks of this tool if the file exists",
    )
    args = parser.parse_args()
    for program in args.programs:
        if program not in PROGRAMS:
            harness.fail(f"unknown program '{program}'; there are {', '.join(PROGRAMS)}")
    args.programs = args.programs or PROGRAMS
    if args.quick:
        args.n, args.scale = 3, 0.2
    if args.n < 1 or args.scale <= 0:
        harness.fail("-n must be at least 1 and --scale above 0")
    if not harness.built(args.build, "measure"):
        harness.fail(
            f"no `measure` in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build"
        )
    return args


def main():
    args = arguments()
    asked = harness.selected(args.variants, VARIANTS, "variant")
    variants = [v for v in VARIANTS if v == BASE or v in asked and available(v)]
    left_out = sorted(set(asked) - set(variants))
    if left_out:
        print(f"not installed for this Python, left out: {', '.join(left_out)}", file=sys.stderr)
    where = about(harness.pin(args.cpu))
    samples = collect(args, variants)
    print(f"{where['versions']['python']}: ratios to the plain interpreter, medians of {args.n}")
    print(table(samples, variants, args.n, harness.plain_table))
    if args.markdown:
        text = f"{caption(where)} Medians of {args.n} repetitions; ratios are to the plain interpreter."
        harness.write_markdown(
            args.markdown, f"{text}\n\n{table(samples, variants, args.n, harness.markdown_table)}"
        )
    if args.json:
        harness.write_json(
            args.json,
            where,
            repetitions=args.n,
            scale=args.scale,
            ratios=summary(samples, variants, args.n),
            samples=samples,
        )


if __name__ == "__main__":
    main()
