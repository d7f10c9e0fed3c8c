#!/usr/bin/env python3
"""Evaluates fixed policies and learners over workloads, by counts that do not depend on the machine's load:
instructions (callgrind), page faults, calls of the OS, bytes held."""

import argparse
import concurrent.futures
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import page
import workloads as w

sys.path.insert(0, str(w.HERE.parent))
from driver import machine, tool  # noqa: E402

NS_AN_INSTRUCTION, FAULT_NS = 0.25, 2000
WARM, STEADY, LEARNED, PHASE, COUNTED = 4, 4, 50, 32, 15_000
NOMINAL = 20_000_000  # a window's length where no learner looks at the time


def replay(args, *options):
    done = subprocess.run(
        [args.build / "learn-replay", f"--fault-ns={args.fault_ns}", f"--every={w.EVENTS_A_WINDOW}", *map(str, options)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"learn: {done.args}: {done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        "windows": [r for r in rows if "faults" in r],
        "decisions": [r for r in rows if "decision" in r],
        "peak_kib": rows[-1]["peak_kib"],
    }


def instructions(args, policy, trace):
    """Of the first events of a trace."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=play_window",
         args.build / "learn-replay", f"--most={COUNTED}", "--policy", policy, f"{trace}:1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"learn: callgrind failed:\n{done.stderr}")
    events = sum(json.loads(line).get("events", 0) for line in done.stdout.splitlines())
    return int(found.group(1)) / events


def trace_of(args, name):
    return name if name in w.MADE else w.record(args.build, args.traces, name)


def fixed(args, name, policy):
    trace = trace_of(args, name)
    file = w.policy_file(args.traces, policy, NOMINAL)
    counted = None if policy.startswith(w.OF_PAGES) else instructions(args, file, trace)
    return {"instructions": counted, **replay(args, "--policy", file, f"{trace}:{WARM + STEADY}")}


def learned(args, name, traces, window_ns, ops_ns):
    base = w.policy_file(args.traces, "default", window_ns)
    times = ["--window-ns", window_ns, "--ops-ns", ops_ns, "--log", "--policy", base]
    runs = {"ucb1": replay(args, *times, "--learn=account", *traces),
            "ucb1 progress": replay(args, *times, "--learn=progress", *traces)}  # fmt: skip
    files = [f"--policy={w.policy_file(args.traces, p, window_ns)}" for p in w.ELO]
    runs["elo"] = replay(args, "--window-ns", window_ns, "--elo", *files, *traces)
    return name, runs


def ops_ns_of(run):
    """CPU time of a window without faults and calls, on average."""
    events = [x["events"] for x in run["windows"]]
    return int(sum(events) / len(events) * run["instructions"] * NS_AN_INSTRUCTION)


def window_ns_of(run):
    ns = [x["ns"] for x in run["windows"][WARM:]]
    return int(ops_ns_of(run) + sum(ns) / len(ns))


def evaluate(args):
    result = {"fixed": {}, "learned": {}, "changes": {}}
    for name in w.RECORDED:
        if name in args.workloads:
            trace_of(args, name)
    jobs = [(n, p) for n in args.workloads for p in w.POLICIES]
    progress = tool.Progress(len(jobs) + len(args.workloads) + len(w.CHANGES))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (name, policy), run in zip(jobs, pool.map(lambda j: fixed(args, *j), jobs)):
            progress.step(f"{name} {policy}")
            result["fixed"].setdefault(name, {})[policy] = run

        def one(name):
            run = result["fixed"][name]["default"]
            return learned(args, name, [f"{trace_of(args, name)}:{LEARNED}"], window_ns_of(run), ops_ns_of(run))

        def change(name):
            halves = [result["fixed"][half]["default"] for half in w.CHANGES[name]]
            window_ns = sum(window_ns_of(h) for h in halves) // 2
            ops = sum(map(ops_ns_of, halves)) // 2
            return learned(args, name, [f"{trace_of(args, h)}:{PHASE}" for h in w.CHANGES[name]], window_ns, ops)

        changes = [c for c, halves in w.CHANGES.items() if all(h in args.workloads for h in halves)]
        for kind, call, names in (("learned", one, args.workloads), ("changes", change, changes)):
            for name, runs in pool.map(call, names):
                progress.step(f"{name} learned")
                result[kind][name] = runs
    progress.end()
    return result


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench learn", description=__doc__)
    names = [*w.MADE, *w.RECORDED]
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(names))
    tool.add_build(parser, "bench/learn", "the player was")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (2)")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="where recorded programs are kept")
    parser.add_argument(
        "--fault-ns", type=int, default=FAULT_NS, metavar="N", help=f"of one page fault ({FAULT_NS})"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all windows there")
    parser.add_argument("--from", type=Path, dest="old", metavar="FILE", help="no runs: what --json wrote")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page there, the plots beside it")
    args = parser.parse_args()
    args.workloads = tool.known(args.workloads, names, "workload")
    args.traces = args.traces or args.build / "traces"
    if args.old:
        result = json.loads(args.old.read_text())
    else:
        args.traces.mkdir(parents=True, exist_ok=True)
        result = evaluate(args)
        result |= {"date": datetime.date.today().isoformat(), "machine": machine.brief(), "commit": machine.commit(w.ROOT)}
        result["fault_ns"] = args.fault_ns
    if args.json:
        args.json.write_text(json.dumps(result))
    page.write(result, args.page)


if __name__ == "__main__":
    main()
