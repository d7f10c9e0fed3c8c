#!/usr/bin/env python3
"""Whether blocks of places whose blocks live long should lie apart: plays recorded programs on one context
and on two, and looks at the memory in the troughs. The forecast comes from another run of the program."""

import argparse
import concurrent.futures
import datetime
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import page
import workloads as w

sys.path.insert(0, str(w.HERE.parent))
from driver import machine, tool  # noqa: E402

MODES = ("one", "two", "lookup")


def lines_of(args, *options):
    command = [args.build / "lifetime-play", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"lifetime: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def callgrind(command, environment=None, text=None, counted=()):
    """Instructions of a program, or of functions of it and what they call; what it prints."""
    options = [f"--toggle-collect={name}" for name in counted]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options, *map(str, command)],
        env=environment, input=text, capture_output=True, check=False,
    )  # fmt: skip
    found = re.search(rb"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"lifetime: callgrind failed:\n{done.stderr.decode(errors='replace')}")
    return int(found.group(1)), done.stdout


def calls(args, runs):
    """Instructions of the allocator's calls for each allocation, by mode."""
    result = {}
    for mode in MODES:
        counted = ("play_alloc", "play_again", "play_lookup")
        total, out = callgrind([args.build / "lifetime-play", *runs, mode], counted=counted)
        result[mode] = total / json.loads(out)["allocations"]
    return result


def program(name, allocations):
    """Instructions of the program for each allocation, without a recorder. A server cannot be counted so."""
    if name == "redis":
        return None
    with tempfile.TemporaryDirectory(prefix="hakmem-lifetime-") as folder:
        (Path(folder) / "lifetime_lua.lua").write_text("return { mark = function() end }\n")
        (Path(folder) / "lifetime_python.py").write_text("def mark():\n    pass\n")
        command, environment, text = w.command_of(name, str(w.SEEDS["test"]), Path(folder) / "none.so")
        environment.pop("LD_PRELOAD")
        environment["LUA_PATH"] = f"{folder}/?.lua;{environment.get('LUA_PATH', '')}"
        environment.pop("PYTHONMALLOC", None)
        text = text and re.sub(rb"\.shell .*\n", b"", text)  # the signal that the recorder waits for
        return callgrind(command, w.environment(environment), text)[0] / allocations


def measure(args, name):
    runs = [w.record(args.build, args.traces, name, seed) for seed in (w.SEEDS["train"], w.SEEDS["test"])]
    about, *rows = lines_of(args, *runs)
    result = {"about": about, "rows": {r["key"]: r for r in rows}}
    if args.instructions:
        result["calls"] = calls(args, runs)
        result["program"] = program(name, about["blocks"])
    return name, result


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench lifetime", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(w.PROGRAMS))
    tool.add_build(parser, "bench/lifetime", "recorder and player were")
    parser.add_argument("--jobs", type=int, default=2, help="programs at once (2)")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="where recorded programs are kept")
    parser.add_argument("--instructions", action="store_true", help="count instructions, too; takes minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--from", type=Path, dest="old", metavar="FILE", help="no runs: what --json wrote")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables there, between the marks")
    args = parser.parse_args()
    args.programs = tool.known(args.programs, w.PROGRAMS, "program")
    args.traces = args.traces or args.build / "traces"
    if args.old:
        result = json.loads(args.old.read_text())
    else:
        args.traces.mkdir(parents=True, exist_ok=True)
        progress, programs = tool.Progress(len(args.programs)), {}
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for name, one in pool.map(lambda n: measure(args, n), args.programs):
                progress.step(name)
                programs[name] = one
        progress.end()
        result = {
            "programs": programs,
            "date": datetime.date.today().isoformat(),
            "machine": machine.brief(),
            "commit": machine.commit(tool.ROOT),
        }
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))
    page.write(result, args.page)


if __name__ == "__main__":
    main()
