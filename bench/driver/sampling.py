"""Running the benchmark programs: a fresh process a sample, pinned, in shuffled order."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

MARK = re.compile(r"getpgid\(8388608([12])\)")


@dataclass(frozen=True)
class Case:
    row: str
    case: str
    curve: bool
    a: int
    threads: int = 0  # 0: a row of one thread, pinned to one CPU

    @property
    def name(self):
        return f"{self.row}/{self.case}"


@dataclass
class Settings:
    binaries: str
    cpu: int
    scale: float
    minutes: float
    timeout: float = 900


def list_cases(binaries):
    done = subprocess.run([f"{binaries}/bench-null", "--list"], capture_output=True, text=True, check=True)
    return [Case(**c) for c in json.loads(done.stdout)]


def version_of(binaries, allocator):
    done = subprocess.run([f"{binaries}/bench-{allocator}", "--version"], capture_output=True, text=True)
    return done.stdout.strip()


def _command(settings, allocator, case, scale, minutes):
    return [
        f"{settings.binaries}/bench-{allocator}",
        "--scale",
        repr(scale),
        "--minutes",
        repr(minutes),
        case.row,
        case.case,
    ]


def sample(settings, allocator, case):
    """The figures of one process, or {"error": why}. Rows of several threads pin those themselves."""
    cpus = os.sched_getaffinity(0) if case.threads else {settings.cpu}
    try:
        done = subprocess.run(
            _command(settings, allocator, case, settings.scale, settings.minutes),
            capture_output=True,
            text=True,
            timeout=settings.timeout + settings.minutes * 90,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {settings.timeout:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"ended with status {done.returncode}"}
    return json.loads(done.stdout)


def system_calls(settings, allocator, case, scale, minutes):
    """(calls, operations) between the marks that the harness sets around its steady part, by strace.
    None where the row sets no marks or failed."""
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as log:
        command = _command(settings, allocator, case, scale, minutes)
        done = subprocess.run(["strace", "-f", "-o", log.name, *command], capture_output=True, text=True)
        if done.returncode:
            return None
        inside, seen, calls = False, False, 0
        for line in log:
            mark = MARK.search(line)
            if mark:
                inside = mark.group(1) == "1"
                seen = True
            elif inside:
                calls += 1
    return (calls, json.loads(done.stdout)["ops"]) if seen else None


class Progress:
    """One line on stderr: rewritten on a terminal, every ten seconds elsewhere."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self.start = self.last = time.monotonic()
        self.tty = sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        now = time.monotonic()
        if not self.tty and now - self.last < 10 and self.done < self.total:
            return
        self.last = now
        left = (now - self.start) / self.done * (self.total - self.done)
        text = f"[{self.done}/{self.total}] {now - self.start:4.0f} s, {left:4.0f} s left  {what}"
        sys.stderr.write(f"\r\033[K{text}" if self.tty else f"{text}\n")
        if self.tty and self.done == self.total:
            sys.stderr.write("\n")
        sys.stderr.flush()


def run_all(settings, plan, seed):
    """plan: [(case, allocators, repetitions)]. Within a repetition the cases are shuffled, and within a
    case the allocators, which follow each other so that they see the same state of the machine. What failed
    is not tried again."""
    order = random.Random(seed)
    failed = set()
    progress = Progress(sum(len(allocators) * reps for _, allocators, reps in plan))
    samples = []
    for rep in range(max(reps for _, _, reps in plan)):
        round_ = [(case, list(allocators)) for case, allocators, reps in plan if rep < reps]
        order.shuffle(round_)
        for case, allocators in round_:
            order.shuffle(allocators)
            for allocator in allocators:
                if (case, allocator) in failed:
                    progress.step(f"{case.name} {allocator}: failed before")
                    continue
                figures = sample(settings, allocator, case)
                if "error" in figures:
                    failed.add((case, allocator))
                samples.append(
                    {"allocator": allocator, "row": case.row, "case": case.case, "rep": rep, **figures}
                )
                progress.step(f"{case.name} {allocator}")
    return samples


def count_system_calls(settings, plan, scale, minutes):
    """System calls per operation, net of those that the null allocator's run makes."""
    progress = Progress(sum(len(allocators) for _, allocators, _ in plan))
    result = []
    for case, allocators, _ in plan:
        base = system_calls(settings, "null", case, scale, minutes)
        for allocator in allocators:
            counted = system_calls(settings, allocator, case, scale, minutes) if base else None
            progress.step(f"system calls {case.name} {allocator}")
            if counted:
                result.append(
                    {
                        "allocator": allocator,
                        "row": case.row,
                        "case": case.case,
                        "per_op": max(0, counted[0] - base[0]) / counted[1],
                        "ops": counted[1],
                    }
                )
    return result
