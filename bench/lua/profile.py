#!/usr/bin/env python3
"""Measures profiles of Lua programs: what they cost, in instructions of the whole process, and how close samples
come to the exact profile.

A program is run at a scale and at twice that scale, and the difference counts: what is done once in a process
(opening the libraries, learning where the runtime allocates, writing the report) is left out. Instructions are
counted by callgrind, so that the figures do not depend on what else the machine does.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import harness
from driver import tool

PROGRAMS = Path(__file__).resolve().parent / "programs"
LAUNCHERS = {
    "luajit": "hakluajit",
    "lua5.1": "haklua5.1",
    "lua5.2": "haklua5.2",
    "lua5.3": "haklua5.3",
    "lua5.4": "haklua5.4",
    "lua5.5": "haklua5.5",
}
WAYS = {"off": None, "512K": "512K", "64K": "64K", "lines": "lines", "exact": "exact"}
TOP, MEAN = 10, 64 << 10


def launch(args, engine, program, scale, rate, file, counted=False):
    """The process; its instructions where they are counted."""
    options = [f"--hak-profile={file},{rate}"] if rate else []
    command = [str(args.build / LAUNCHERS[engine]), *options, str(PROGRAMS / f"{program}.lua"), str(scale)]
    if counted:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tool.fail(f"{engine} {program}: exit status {done.returncode}\n{done.stderr}")
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found.group(1)) if counted and found else None


def costs(args, engine, program, progress):
    """Instructions of the work, by way."""
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in args.ways:
            progress.step(f"{engine} {program} {way}")
            once, twice = (
                launch(args, engine, program, scale, WAYS[way], Path(folder) / "profile", counted=True)
                for scale in (args.scale, 2 * args.scale)
            )
            counts[way] = twice - once
    return counts


def lines_of(file, what):
    """Bytes, allocated or live ("alloc", "live"), and their variance by innermost line of Lua, and what the profile
    says of itself."""
    context = json.loads(Path(file).read_text())["contexts"][0]
    frames = context["frames"]
    lines = {}
    for stack in context["stacks"]:
        line = next(
            (f"{frames[f]['file']}:{frames[f].get('line', 0)}" for f in stack["frames"] if frames[f].get("file")),
            "none",
        )
        old = lines.setdefault(line, [0.0, 0.0])
        old[0] += stack[f"{what}_bytes"]
        old[1] += stack.get(f"{what}_bytes_error", 0) ** 2
    return lines, context["profile"]


def off_by(sampled, truth):
    """How far the sum of the lines is off, in standard errors. A variance is at most bytes times the mean; what the
    samples say of it is 0 where little lives and none of it was drawn."""
    estimate, variance = (sum(v[i] for v in sampled.values()) for i in (0, 1))
    return abs(estimate - truth) / (variance or truth * MEAN or 1) ** 0.5


def accuracy(args, engine, program, progress):
    """How many of the top lines are the same, and how far estimates are off, in standard errors."""
    with tempfile.TemporaryDirectory() as folder:
        read, live = {}, {}
        for way in ("exact", "64K"):
            progress.step(f"{engine} {program} {way}")
            file = Path(folder) / way
            launch(args, engine, program, args.accuracy_scale, WAYS[way], file)
            read[way] = lines_of(file, "alloc")
            live[way] = lines_of(file, "live")[0]
    (exact, _), (sampled, profile) = read["exact"], read["64K"]
    total = sum(v[0] for v in exact.values())
    # What no line takes a two-hundredth of is nothing to look at.
    top = [line for line in sorted(exact, key=lambda line: -exact[line][0])[:TOP] if exact[line][0] > total / 200]
    # lines that differ by less than the samples can tell are as good as each other
    found = sorted(sampled, key=lambda line: -sampled[line][0])[:TOP]
    least = exact[top[-1]][0]
    same = sum(1 for line in found if line in top or exact.get(line, [0])[0] > 0.9 * least)
    live_total = sum(v[0] for v in live["exact"].values())
    off = [abs(sampled.get(line, [0, 0])[0] - exact[line][0]) / max(sampled.get(line, [0, 0])[1] ** 0.5, 1)
           for line in top if line in sampled]
    return {
        "lines": len(top),
        "same": min(same, len(top)),
        "samples": profile["samples"],
        "total_mb": total / 2**20,
        "total_off": off_by(sampled, total),
        "live_mb": live_total / 2**20,
        "live_off": off_by(live["64K"], live_total),
        "worst_off": max(off) if off else 0.0,
        "within": sum(1 for o in off if o <= 3),
        "compared": len(off),
    }


def cost_rows(args, measured):
    for engine in args.engines:
        for program in args.programs:
            counts = measured[engine][program]
            base = counts["off"]
            yield [
                f"{harness.ENGINES.get(engine, engine)}, {program}",
                f"{base / 1e6:.0f}",
                *(f"{100 * (counts[way] / base - 1):+.2f} %" for way in args.ways if way != "off"),
            ]


def accuracy_rows(args, measured):
    for engine in args.engines:
        for program in args.programs:
            a = measured[engine][program]
            yield [
                f"{harness.ENGINES.get(engine, engine)}, {program}",
                f"{a['total_mb']:.1f}",
                str(a["samples"]),
                f"{a['same']} of {a['lines']}",
                f"{a['total_off']:.1f}",
                f"{a['live_mb']:.2f}",
                f"{a['live_off']:.1f}",
                f"{a['within']} of {a['compared']}",
                f"{a['worst_off']:.1f}",
            ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    tool.add_build(parser, "bindings/lua", "the launchers are")
    parser.add_argument("programs", nargs="*", help="of bench/lua/programs (all)")
    parser.add_argument("--engines", help="comma-separated: luajit,lua5.1 to lua5.5 (luajit,lua5.4)")
    parser.add_argument("--ways", help=f"comma-separated, beside off: {','.join(list(WAYS)[1:])} (all)")
    parser.add_argument("--scale", type=float, default=0.05, help="of the work that is counted (0.05)")
    parser.add_argument("--accuracy-scale", type=float, default=0.5, help="of the work that is sampled (0.5)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail where a sum is off by more than 5 errors, or less than 7 of 10 lines are the same",
    )
    parser.add_argument("--what", choices=("all", "cost", "accuracy"), default="all")
    tool.add_outputs(parser)
    args = parser.parse_args()
    args.engines = tool.selected(args.engines or "luajit,lua5.4", LAUNCHERS, "engine")
    args.programs = tool.known(args.programs, sorted(p.stem for p in PROGRAMS.glob("*.lua")), "program")
    args.ways = ["off", *tool.selected(args.ways or ",".join(list(WAYS)[1:]), WAYS, "way")]
    tool.check_outputs(args)
    for engine in args.engines:
        if not (args.build / LAUNCHERS[engine]).exists():
            tool.fail(f"no {LAUNCHERS[engine]} in {args.build}")
    parts, results = [], {}
    tables = []
    if args.what != "accuracy":
        progress = tool.Progress(len(args.engines) * len(args.programs) * len(args.ways))
        results["cost"] = {e: {p: costs(args, e, p, progress) for p in args.programs} for e in args.engines}
        progress.end()
        header = ["instructions", "off, million", *(w for w in args.ways if w != "off")]
        tables.append(("Cost", header, list(cost_rows(args, results["cost"]))))
    if args.what != "cost":
        progress = tool.Progress(len(args.engines) * len(args.programs) * 2)
        results["accuracy"] = {
            e: {p: accuracy(args, e, p, progress) for p in args.programs} for e in args.engines
        }
        progress.end()
        header = ["64K", "MB", "samples", "top lines", "total, errors", "live MB", "live, errors", "lines within 3", "worst, errors"]
        tables.append(("Accuracy", header, list(accuracy_rows(args, results["accuracy"]))))
    about = harness.description(None, [e for e in args.engines if e in harness.ENGINES], args.build)
    for title, header, rows in tables:
        print(f"{title}\n{tool.plain_table(header, rows)}\n")
    if args.check and not all(
        a["total_off"] <= 5 and a["live_off"] <= 5 and a["same"] >= 0.7 * a["lines"]
        for programs in results["accuracy"].values()
        for a in programs.values()
    ):
        tool.fail("an estimate is too far off")
    if args.json:
        tool.write_json(args.json, about, **results)
    if args.markdown:
        parts = [harness.caption(about)]
        parts += [f"### {title}\n\n{tool.markdown_table(header, rows)}" for title, header, rows in tables]
        tool.write_markdown(args.markdown, "\n\n".join(parts))


if __name__ == "__main__":
    main()
