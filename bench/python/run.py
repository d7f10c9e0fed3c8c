#!/usr/bin/env python3
"""Runs the Python programs of this folder under hakmem and beside it, and compares CPU time and peak memory.

Every sample is a fresh process on one CPU. Within a repetition the order of programs and variants is
shuffled; a figure is the median of the ratios to the plain interpreter in the same repetition. What a program
prints must be the same in every variant. The interpreter is the one that runs this script; it must be able to
import hakmem.
"""

import os
import platform
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from driver import compare, tool  # noqa: E402

try:
    from hakmem import _launch
except ImportError:
    tool.fail("this Python has no hakmem: install it, or set PYTHONPATH=build/release/bindings/python")

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
    command = [sys.executable, *before, HERE / "programs" / f"{program}.py", scale]
    return compare.sample(measure, command, environment(settings))


def collect(args, variants):
    """samples[program][variant] = list of what the repetitions used."""
    samples = {p: {v: [] for v in variants} for p in args.programs}
    outputs = compare.Outputs()
    progress = tool.Progress(args.n * len(args.programs) * len(variants))
    order = random.Random(args.seed)
    for _ in range(args.n):
        for program in order.sample(args.programs, len(args.programs)):
            for variant in order.sample(variants, len(variants)):
                progress.step(f"{program} {variant}")
                text, used = sample(args.build / "measure", variant, program, args.scale)
                outputs.check(program, f"in variant {variant}", text)
                samples[program][variant].append(used)
    progress.end()
    return samples


def available(variant):
    if variant != "memray":
        return True
    return subprocess.run([sys.executable, "-c", "import memray"], capture_output=True).returncode == 0


def about(cpu):
    import hakmem

    return tool.about(
        {
            "python": f"CPython {platform.python_version()} ({platform.python_build()[1]}, {sys.prefix})",
            "hakmem": hakmem.take_snapshot().parts["hakmem"],
        },
        cpu,
    )


def caption(where):
    return tool.caption(
        where, f"hakmem {where['versions']['hakmem']}", f"CPython {platform.python_version()}"
    )


def arguments():
    parser = compare.parser(__doc__, PROGRAMS)
    tool.add_build(parser, "bench/lua", "`measure` was")
    parser.add_argument(
        "--variants", metavar="LIST", help=", ".join(VARIANTS) + f"; default: all; {BASE} is always run"
    )
    compare.add_arguments(parser, 7, "a fifth", "table")
    args = compare.parse(parser, PROGRAMS, 0.2)
    if not tool.built(args.build, "measure"):
        tool.fail(f"no `measure` in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build")
    return args


def main():
    args = arguments()
    asked = tool.selected(args.variants, VARIANTS, "variant")
    variants = [v for v in VARIANTS if v == BASE or v in asked and available(v)]
    left_out = sorted(set(asked) - set(variants))
    if left_out:
        print(f"not installed for this Python, left out: {', '.join(left_out)}", file=sys.stderr)
    where = about(tool.pin(args.cpu))
    samples = collect(args, variants)
    comparison = compare.Comparison(samples, variants, BASE, args.n)
    print(f"{where['versions']['python']}: ratios to the plain interpreter, medians of {args.n}")
    print(comparison.table(tool.plain_table, 3))
    if args.markdown:
        text = f"{caption(where)} Medians of {args.n} repetitions; ratios are to the plain interpreter."
        tool.write_markdown(args.markdown, f"{text}\n\n{comparison.table(tool.markdown_table, 3)}")
    if args.json:
        tool.write_json(
            args.json,
            where,
            repetitions=args.n,
            scale=args.scale,
            ratios=comparison.summary(),
            samples=samples,
        )


if __name__ == "__main__":
    main()
