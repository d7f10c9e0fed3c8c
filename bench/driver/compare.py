"""Whole programs under variants of a runtime: CPU time and peak memory against one variant, the base."""

import argparse
import json
import random
import statistics
import subprocess
import tempfile

from . import tool

# What the runs of a program are compared by: unit and digits of the base's median in a table.
MEASURES = {"cpu_s": (1, 3), "peak_kb": (1024, 1)}


def parser(description, programs):
    """`description` is the docstring of the tool, whose first paragraph is shown."""
    made = argparse.ArgumentParser(
        description=description.partition("\n\n")[0], epilog="Programs: " + ", ".join(programs)
    )
    made.add_argument("programs", nargs="*", metavar="program", help="default: all")
    return made


def add_arguments(parser, n, quick, what="tables"):
    """`quick` says in words what share of the work --quick does."""
    parser.add_argument("-n", type=int, default=n, help=f"repetitions ({n})")
    parser.add_argument("--scale", type=float, default=1, help="work of the programs (1)")
    parser.add_argument("--quick", action="store_true", help=f"3 repetitions at {quick} of the work")
    tool.add_cpu(parser)
    tool.add_seed(parser)
    tool.add_outputs(parser, what)


def parse(parser, programs, quick):
    """The arguments, checked; `quick` is the scale of --quick."""
    args = parser.parse_args()
    args.programs = tool.known(args.programs, programs, "program")
    if args.quick:
        args.n, args.scale = 3, quick
    if args.n < 1 or args.scale <= 0:
        tool.fail("-n must be at least 1 and --scale above 0")
    tool.check_outputs(args)
    return args


def sample(measure, command, environment=None):
    """One run: what it printed and what it used."""
    command = [str(part) for part in command]
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as result:
        done = subprocess.run(
            [str(measure), result.name, *command], env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            tool.fail(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        used = json.load(result)
    return done.stdout, {"cpu_s": used["user_s"] + used["sys_s"], "peak_kb": used["peak_kb"]}


class Outputs:
    """What each program printed first: it must be the same in every run."""

    def __init__(self):
        self.first = {}

    def check(self, program, way, text):
        expected = self.first.setdefault(program, text)
        if text != expected:
            tool.fail(f"{program} {way} printed {text!r}; before {expected!r}")


class Comparison:
    """samples[program][variant] = list of what the n repetitions used."""

    def __init__(self, samples, variants, base, n):
        self.samples, self.base, self.n = samples, base, n
        self.others = [v for v in variants if v != base]

    def ratio(self, program, variant, measure, repetitions=None):
        runs, base = self.samples[program][variant], self.samples[program][self.base]
        chosen = range(self.n) if repetitions is None else repetitions
        return statistics.median(runs[i][measure] / base[i][measure] for i in chosen)

    def geomean(self, variant, measure, repetitions=None):
        return statistics.geometric_mean(
            [self.ratio(program, variant, measure, repetitions) for program in self.samples]
        )

    def interval(self, variant, measure):
        """95 % interval of the geometric mean, by drawing repetitions again."""
        draw = random.Random(1)
        means = sorted(
            self.geomean(variant, measure, draw.choices(range(self.n), k=self.n)) for _ in range(400)
        )
        return means[10], means[-11]

    def table(self, form, digits):
        """`digits` behind the point of a program's ratio."""
        rows = []
        for program, runs in self.samples.items():
            row = [program]
            for measure, (unit, places) in MEASURES.items():
                row.append(f"{statistics.median(r[measure] for r in runs[self.base]) / unit:.{places}f}")
                row += [f"{self.ratio(program, v, measure):.{digits}f}" for v in self.others]
            rows.append(row)
        geomeans, intervals = ["geomean"], ["95 % interval"]
        for measure in MEASURES:
            geomeans += ["", *(f"{self.geomean(v, measure):.3f}" for v in self.others)]
            intervals += ["", *("{:.3f}-{:.3f}".format(*self.interval(v, measure)) for v in self.others)]
        header = ["program", "CPU s", *self.others, "peak MB", *self.others]
        return form(header, [*rows, geomeans, intervals])

    def summary(self):
        """The medians and geomeans of the table, for the result file."""
        return {
            v: {
                measure: {
                    "geomean": self.geomean(v, measure),
                    "programs": {program: self.ratio(program, v, measure) for program in self.samples},
                }
                for measure in MEASURES
            }
            for v in self.others
        }
