#!/usr/bin/env python3
"""Runs the benchmark suite and writes its figures. scripts/bench prepares the build and calls it."""

import argparse
import dataclasses
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from driver import figures, machine, plots, report, sampling

SOURCE = Path(__file__).resolve().parent.parent
DOCUMENTS = SOURCE / "docs/measurements"
# The soak takes minutes: one sample of it. The curves over a range take fewer repetitions.
REPETITIONS = {False: 9, True: 3}
CURVE_REPETITIONS = {False: 3, True: 1}
QUICK_SCALE, QUICK_MINUTES = 0.15, 0.03
QUICK_WITHOUT = ("ctx/live50000",)


def positive(kind):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e6:
            raise argparse.ArgumentTypeError(f"{text!r}: a number above 0 is wanted")
        return value

    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """One line: what is wrong and what is allowed."""
        self.exit(2, f"{self.prog}: {message}\n")


def make_parser():
    parser = Parser(prog="scripts/bench", description=__doc__.split(".")[0] + ".")
    parser.add_argument("rows", nargs="*", metavar="ROW[/CASE]", help="only these; default: all")
    parser.add_argument("--quick", action="store_true", help="under five minutes: fewer and shorter samples")
    parser.add_argument("--allocators", metavar="A,B", help="only these; default: all that were built")
    parser.add_argument("--reps", type=positive(int), help="repetitions (9; quick: 3)")
    parser.add_argument("--scale", type=positive(float), help=f"length of a sample (1; quick: {QUICK_SCALE})")
    parser.add_argument(
        "--minutes", type=positive(float), help=f"length of the soak (2; quick: {QUICK_MINUTES})"
    )
    parser.add_argument("--cpu", type=int, help="the CPU to run on (the last one)")
    parser.add_argument(
        "--syscalls",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count system calls by strace in a run of their own",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where the samples, the table and the plots go (results/ of the build)",
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write docs/measurements/core.md, its plots and the table of the README there, of a run of all rows",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.json",
        help="measure nothing: write table and plots of this run again, or publish it",
    )
    parser.add_argument(
        "--dirty",
        action="store_true",
        help="publish all the same what was measured with changes that are not committed; the page says so",
    )
    parser.add_argument("--list", action="store_true", help="show rows, cases and allocators")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    return parser


def of_all(options):
    """Whether a run with these options has all rows and allocators, in full length."""
    return not options.quick and not options.rows and not options.allocators


PART = "--publish takes a run of all rows and allocators, without --quick"


def allocators_known(build):
    """(found, missing with the reason), as CMake wrote them."""
    found, missing = [], {}
    for line in (build / "bench/peers.txt").read_text().splitlines():
        name, state = line.split(" ", 1)
        if state == "found":
            found.append(name)
        else:
            missing[name] = state.removeprefix("missing: ")
    return found, missing


def build_programs(build, names):
    """Builds the programs; those that fail are returned with the reason."""
    targets = [f"bench-{n}" for n in names]
    done = subprocess.run(["cmake", "--build", build, "--target", *targets], capture_output=True, text=True)
    if done.returncode == 0:
        return {}
    failed = {}
    for name in names:
        one = subprocess.run(
            ["cmake", "--build", build, "--target", f"bench-{name}"], capture_output=True, text=True
        )
        if one.returncode:
            errors = [line for line in one.stdout.splitlines() if "error" in line or "undefined" in line]
            failed[name] = "does not build: " + (errors[0].strip() if errors else "see the build")
    return failed


def choose(parser, cases, options):
    wanted = options.rows
    if not wanted:
        return [c for c in cases if not options.quick or c.name not in QUICK_WITHOUT]
    chosen = [c for c in cases if c.row in wanted or c.name in wanted]
    for word in wanted:
        if not any(word in (c.row, c.name) for c in cases):
            parser.error(f"no row {word!r}; there are: {', '.join(dict.fromkeys(c.row for c in cases))}")
    return chosen


def plan_of(cases, allocators, options):
    plan = []
    for case in cases:
        reps = options.reps
        if case.row == "soak":
            reps = 1
        elif case.curve:
            reps = min(reps, CURVE_REPETITIONS[options.quick])
        names = [a for a in allocators if case.name != "startup/buffer" or a.startswith("hak")]
        names = [a for a in names if figures.runs(a, case.row) and (not case.curve or a in plots.IN_CURVES)]
        plan.append((case, names, reps))
    return plan


def save(run, directory, full):
    """Writes the samples, one a line, so that the file stays readable; returns its path."""
    name = run["date"][:10] if full else run["date"].replace(":", "").replace(" ", "-")
    directory.mkdir(parents=True, exist_ok=True)
    head = json.dumps({k: v for k, v in run.items() if k != "samples"}, indent=1)[:-2]
    lines = ",\n".join("  " + json.dumps(s) for s in run["samples"])
    path = directory / f"{name}.json"
    path.write_text(f'{head},\n "samples": [\n{lines}\n ]\n}}\n')
    return path


def refuse_dirty(commit, options):
    """What goes into the documentation must be measured from a commit that others can have."""
    if options.publish and not machine.publishable(commit) and not options.dirty:
        sys.exit(
            f"bench: commit {commit}: what is published must come from a commit without changes; commit "
            "first, leave out --publish, or give --dirty to publish all the same"
        )


def refuse_part(run, path, options):
    """The pages are of whole runs, whenever they are written: the command that measured says what was left out."""
    measured = make_parser().parse_args([*shlex.split(run["command"])[1:], "--build", "."])
    if options.publish and not of_all(measured):
        sys.exit(f"bench: {path} is of {run['command']!r}: {PART}")


def present(path, options):
    """Writes table and plots beside the samples in `path`, and the pages of the documentation if it is told to."""
    run = json.loads(path.read_text())
    if run.get("version") != 1:
        sys.exit(f"bench: {path}: version {run.get('version')} of the format, 1 is wanted")
    refuse_part(run, path, options)
    refuse_dirty(run["machine"]["commit"], options)
    result = figures.Figures(run)
    text = "\n".join(report.markdown(run, result))
    path.with_suffix(".md").write_text(text)
    path.with_suffix("").mkdir(exist_ok=True)
    plots.all_plots(run, result, path.with_suffix(""))
    if options.publish:
        pictures = DOCUMENTS / "plots"
        shutil.rmtree(pictures, ignore_errors=True)
        shutil.copytree(path.with_suffix(""), pictures)
        report.publish(run, result, pictures, DOCUMENTS)
        plots.overview(list(report.against_the_best(run, result)), DOCUMENTS / "overview.svg")
    print(text)
    print(f"written: {path}, {path.stem}.md, {path.stem}/*.svg")
    return 0


def main():
    parser = make_parser()
    options = parser.parse_args()
    if options.report:
        return present(options.report, options)
    found, missing = allocators_known(options.build)
    build_programs(options.build, ["null"])
    binaries = str(options.build / "bench")
    listed = sampling.list_cases(binaries)
    if options.list:
        print("\n".join(c.name for c in listed))
        print("allocators:", ", ".join(found), *(f"\nmissing: {n}: {why}" for n, why in missing.items()))
        return 0
    cases = choose(parser, listed, options)
    names = found
    if options.allocators:
        names = options.allocators.split(",")
        for name in names:
            if name not in found:
                parser.error(f"no allocator {name!r}; there are: {', '.join(found)}")
        names = list(dict.fromkeys(["null", *(["null-labels"] if "hak-labels" in names else []), *names]))
    options.reps = options.reps or REPETITIONS[options.quick]
    cpus = sorted(os.sched_getaffinity(0))
    if options.cpu is not None and options.cpu not in cpus:
        parser.error(f"--cpu {options.cpu}: allowed are {', '.join(map(str, cpus))}")
    settings = sampling.Settings(
        binaries=binaries,
        cpu=cpus[-1] if options.cpu is None else options.cpu,
        scale=options.scale or (QUICK_SCALE if options.quick else 1),
        minutes=options.minutes or (QUICK_MINUTES if options.quick else 2),
    )
    missing.update(failed := build_programs(options.build, names))
    names = [n for n in names if n not in failed]

    full = of_all(options)
    if options.publish and not full:
        parser.error(PART)
    directory = options.output or options.build / "results"
    described = machine.describe(SOURCE)
    refuse_dirty(described["commit"], options)
    started = datetime.datetime.now()
    clock = time.monotonic()
    plan = plan_of(cases, names, options)
    samples = sampling.run_all(settings, plan, seed=started.toordinal())
    calls = []
    if options.syscalls:
        counted = [p for p in plan if any(m is figures.CALLS for m in figures.METRICS[p[0].row])]
        calls = sampling.count_system_calls(settings, counted, 0.02, 0.02) if counted else []
    run = {
        "version": 1,
        "date": started.strftime("%Y-%m-%d %H:%M:%S"),
        "command": shlex.join(["scripts/bench", *sys.argv[3:]]),
        "machine": described,
        "versions": {n: sampling.version_of(binaries, n) for n in names},
        "missing": missing,
        "settings": {
            "repetitions": options.reps,
            "scale": settings.scale,
            "minutes": settings.minutes,
            "cpu": settings.cpu,
        },
        "seconds": round(time.monotonic() - clock),
        "cases": [dataclasses.asdict(c) for c in cases],
        "system_calls": calls,
        "samples": samples,
    }
    return present(save(run, directory, full), options)


if __name__ == "__main__":
    sys.exit(main())
