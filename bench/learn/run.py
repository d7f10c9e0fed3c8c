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
FIXED, LEARNED, BOTH, PHASE = 20, 50, 90, 32  # windows
LIVES = 40  # of states
SETTLED = 3  # the pass whose instructions are compared with those of a learner's context
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
        "pass": rows[-1]["pass"],
    }


def instructions(args, trace, *policy, which=2):
    """Of an event, in this pass of a trace."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--instr-atstart=no",
         "--toggle-collect=play_window", "--toggle-collect=make_again", args.build / "learn-replay", f"--every={w.EVENTS_A_WINDOW}", f"--counted={which}", *map(str, policy), f"{trace}:1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"learn: callgrind failed:\n{done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return int(found.group(1)) / sum(row["events"] for row in rows[: rows[-1]["pass"]])


def trace_of(args, name):
    return name if name in w.MADE else w.record(args.build, args.traces, name)


def fixed(args, name, policy):
    trace = trace_of(args, name)
    file, base = (w.policy_file(args.traces, p, NOMINAL) for p in (policy, "default"))
    run = replay(args, "--policy", file, f"{trace}:{FIXED}")
    run["instructions"] = None if policy.startswith(w.OF_PAGES) else instructions(args, trace, "--policy", file)
    run["late"] = run["instructions"]
    if policy in w.MODES.values() and policy != "default":
        run["late"] = instructions(args, trace, "--policy", base, "--later", file, which=SETTLED)
    return run


def second(args, name, file, window_ns):
    """The next start, with the policy that was learned, and with no learner."""
    trace = trace_of(args, name)
    policy = f"--policy={w.saved_policy(file, window_ns)}"
    run = replay(args, "--window-ns", window_ns, policy, f"{trace}:{FIXED}")
    timed = ["--window-ns", window_ns, policy]
    run["instructions"], run["first"] = (instructions(args, trace, *timed, which=which) for which in (2, 1))
    run["policy"] = file.read_text()
    return run


def learned(args, name, traces, window_ns, event_ns):
    base = w.policy_file(args.traces, "default", window_ns)
    times = ["--window-ns", window_ns, "--log", "--policy", base]
    clock = [f"--event-ns={mode}={ns}" for mode, ns in event_ns.items()]
    # With a clock of CPU time a window of the same work may be shorter than before; each tick ends one.
    short = ["--window-ns", window_ns // 100, *times[2:]]
    saved = args.traces / f"{name.replace(' ', '-')}.learned"
    runs = {"ucb1": replay(args, *times, "--learn=account", f"--save={saved}", *traces),
            "ucb1 progress": replay(args, *short, *clock, "--learn=progress", *traces)}  # fmt: skip
    files = [f"--policy={w.policy_file(args.traces, p, window_ns)}" for p in w.ELO]
    runs["elo"] = replay(args, "--window-ns", window_ns, "--elo", *files, *traces)
    if name in w.CHANGES:
        return name, runs
    longer = f"{trace_of(args, name)}:{BOTH}"
    runs["both"] = replay(args, "--window-ns", window_ns, "--log", "--elo", "--learn=account", *files, longer)
    runs["second"] = second(args, name, saved, window_ns)
    return name, runs


def event_ns_of(fixed):
    """CPU time of an event without faults and calls, in each mode that a learner may choose."""
    return {mode: fixed[policy]["late"] * NS_AN_INSTRUCTION for mode, policy in w.MODES.items()}


def window_ns_of(run):
    """Of the default, on average."""
    windows = page.steady(run)
    ns = sum(x["events"] for x in windows) * run["instructions"] * NS_AN_INSTRUCTION + sum(x["ns"] for x in windows)
    return int(ns / len(windows))


def passes(args, name, fixed):
    """Instructions of the first and the third pass: of the default and the best policy."""
    for policy in {"default": 0, page.Workload(fixed).best: 0}:
        file = w.policy_file(args.traces, policy, NOMINAL)
        for which, at in (("first", 1), ("settled", SETTLED)):
            fixed[policy][which] = instructions(args, trace_of(args, name), "--policy", file, which=at)
    fixed["default"]["late"] = fixed["default"]["settled"]


def states(args, name):
    """Instructions of a whole life, and what is held at its end, by policy; the last one is what a learner saved."""
    trace, rows = w.record(args.build, args.traces, name), {}
    saved = args.traces / f"{name}.learned"
    every = ["--fresh", f"--every={1 << 30}"]
    files = {p: w.policy_file(args.traces, p, NOMINAL) for p in w.STATE_POLICIES}
    replay(args, *every, "--policy", files["default"], "--learn=account", f"--save={saved}", f"{trace}:{LIVES}")
    files["learned"] = w.saved_policy(saved, NOMINAL)
    for policy, file in files.items():
        windows = replay(args, *every, "--policy", file, f"{trace}:{LIVES}")["windows"][LIVES // 2:]
        each = instructions(args, trace, *every, "--policy", file, which=SETTLED) * windows[0]["events"]
        rows[policy] = {"instructions": each, "held": windows[-1]["held"], "events": windows[0]["events"], "text": file.read_text()}
    return rows


def evaluate(args):
    result = {"fixed": {}, "learned": {}, "changes": {}, "states": {}}
    if args.fixed:
        old = json.loads(args.fixed.read_text())
        result |= {"fixed": {n: old["fixed"][n] for n in args.workloads}, "fixed_commit": old["commit"]}
    for name in w.RECORDED:
        if name in args.workloads:
            trace_of(args, name)
    jobs = [(n, p) for n in args.workloads for p in w.POLICIES if not args.fixed]
    progress = tool.Progress(len(jobs) + len(args.workloads) + len(w.CHANGES))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (name, policy), run in zip(jobs, pool.map(lambda j: fixed(args, *j), jobs)):
            progress.step(f"{name} {policy}")
            result["fixed"].setdefault(name, {})[policy] = run

        def one(name):
            fixed = result["fixed"][name]
            if not args.fixed:
                passes(args, name, fixed)
            trace = f"{trace_of(args, name)}:{LEARNED}"
            return learned(args, name, [trace], window_ns_of(fixed["default"]), event_ns_of(fixed))

        def change(name):
            halves = [result["fixed"][half] for half in w.CHANGES[name]]
            window_ns = sum(window_ns_of(h["default"]) for h in halves) // 2
            event_ns = {m: sum(event_ns_of(h)[m] for h in halves) / 2 for m in w.MODES}
            return learned(args, name, [f"{trace_of(args, h)}:{PHASE}" for h in w.CHANGES[name]], window_ns, event_ns)

        changes = [c for c, halves in w.CHANGES.items() if all(h in args.workloads for h in halves)]
        for kind, call, names in (("learned", one, args.workloads), ("changes", change, changes)):
            for name, runs in pool.map(call, names):
                progress.step(f"{name} learned")
                result[kind][name] = runs
    progress.end()
    result["states"] = {name: states(args, name) for name in w.STATES}
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
    parser.add_argument(
        "--fixed", type=Path, metavar="FILE", help="no runs of fixed policies: those that --json wrote, for work on learners"
    )
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
