#!/usr/bin/env python3
"""Runs heaps and servers for long with steady work: drift of resident memory, growth of tables, system calls.

Exit status: 0 = every goal was reached; 1 = one was missed, or nothing could run; 2 = wrong arguments."""

import argparse
import csv
import importlib.util
import json
import sys
import time
from pathlib import Path

from kinds import KINDS, Missing
from verdict import LEAST, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from driver import tool  # noqa: E402

MIB = 2**20
KEYS = ("resident_bytes", "live_bytes", "committed_bytes", "metadata_bytes", "mappings", "ops")


def soak(kind, seconds, samples):
    """The samples of one kind, in even distances of time; before each there is one step at least."""
    for _ in range(kind.warm):
        kind.step()
    begin, series = time.monotonic(), []
    for n in range(1, samples + 1):
        kind.step()
        while time.monotonic() < begin + seconds * n / samples:
            kind.step()
        series.append(
            {
                "seconds": time.monotonic() - begin,
                "resident_bytes": kind.resident(),
                "mappings": kind.mappings(),
                **kind.figures(),
            }
        )
    return series


def rows(results):
    for name, r in results.items():
        v = r["verdict"]
        yield [
            name,
            f"{v['operations']:.3g}",
            f"{v['resident_mib']:.1f}",
            f"{v['drift_percent']:+.2f}",
            f"{v['variation_percent']:.2f}",
            "not counted" if v["calls"] is None else f"{v['calls']:.1e}",
            f"{v['tables_percent']:+.2f}",
            f"{v['mappings_percent']:+.2f}",
            "; ".join(v["missed"]) or "reached",
        ]


HEADER = ["", "operations", "resident MiB", "drift %", "variation %", "calls/operation", "tables %", "mappings %", "goals"]  # fmt: skip


def write_csv(path, results):
    keys = ["kind", "seconds", *KEYS, "os_calls"]
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, keys, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        for name, r in results.items():
            out.writerows({"kind": name, **sample} for sample in r["samples"])


def write_plot(path, results):
    """Resident and live memory of each kind over time."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "hakmem", "font.size": 9})
    figure, axes = pyplot.subplots(len(results), 1, figsize=(8, 1.7 * len(results)), squeeze=False, sharex=True)
    for axis, (name, r) in zip(axes.flat, results.items(), strict=True):
        minutes = [s["seconds"] / 60 for s in r["samples"]]
        for key, colour in (("resident_bytes", "#c1121f"), ("live_bytes", "#0077b6")):
            axis.plot(minutes, [s[key] / MIB for s in r["samples"]], color=colour, label=key.split("_")[0])
        axis.set_ylim(bottom=0)
        axis.set_ylabel(f"{name}, MiB")
        axis.grid(alpha=0.3)
    axes.flat[0].legend(loc="lower right")
    axes.flat[-1].set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def count(text):
    value = int(text)
    if value < LEAST:
        raise argparse.ArgumentTypeError(f"at least {LEAST}")
    return value


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__.split("\n")[0])
    tool.add_build(parser, "", "hakmem was")
    parser.add_argument("--minutes", type=float, default=60, help="of each (60)")
    parser.add_argument("--samples", type=count, default=480, help="of each (480)")
    parser.add_argument("--leak", type=int, default=0, metavar="N", help="forget N blocks a step, to see it told (0)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them there, as SVG (needs matplotlib)")
    tool.add_outputs(parser)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(KINDS)} (all)")
    options = parser.parse_args()
    tool.check_outputs(options)
    if options.plot and not importlib.util.find_spec("matplotlib"):
        tool.fail(f"{sys.executable} has no matplotlib for --plot (Debian package: python3-matplotlib)")
    results = {}
    for name in tool.known(options.what, KINDS, "kind"):
        try:
            kind = KINDS[name](options.build.resolve(), name, options.leak)
        except Missing as why:
            print(f"soak: {name} is left out: {why}", file=sys.stderr)
            continue
        try:
            samples = soak(kind, options.minutes * 60, options.samples)
        finally:
            kind.close()
        results[name] = {"verdict": verdict(samples, kind.counted), "samples": samples}
        print(json.dumps({"kind": name, **results[name]["verdict"]}), flush=True)
    if not results:
        sys.exit("soak: nothing could run")
    about = tool.about({})
    if options.csv:
        write_csv(options.csv, results)
    if options.plot:
        write_plot(options.plot, results)
    if options.json:
        tool.write_json(options.json, about, results=results)
    if options.markdown:
        text = tool.caption(about, "hakmem") + "\n\n" + tool.markdown_table(HEADER, list(rows(results)))
        tool.write_markdown(options.markdown, text)
    print(tool.plain_table(HEADER, list(rows(results))), file=sys.stderr)
    sys.exit(any(r["verdict"]["missed"] for r in results.values()))


if __name__ == "__main__":
    main()
