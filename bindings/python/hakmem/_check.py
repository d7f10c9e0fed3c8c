"""Is hakmem really in? And a word to a running program."""

import json
import os
import subprocess
import sys
import time

from hakmem import _api, _hakmem, _launch

PROBE = "import json, hakmem; print(json.dumps(hakmem.status()))"
# How long a program may take to reach a place where it can trim, and how long its memory must stay as it is.
PATIENCE, CALM = 10.0, 0.3


def check(all_domains):
    """Says what is there; 0 if all of it is hakmem's."""
    if any(k.startswith("HAKMEM_") for k in os.environ) or _launch.HOOK.name in os.environ.get(
        "LD_PRELOAD", ""
    ):
        print("this process was started with the variables of hakmem")
        return explain(_api.status(), os.environ.get("HAKMEM_DOMAINS", "raw") == "all")
    print("this process was started without hakmem; a new one with it:")
    environment = _launch.environment(print, all_domains=all_domains)
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    if done.stderr:
        print(done.stderr.rstrip())
    if done.returncode != 0:
        print(f"it ended with status {done.returncode}")
        return 1
    # What start-up files print comes before.
    return explain(json.loads(done.stdout.splitlines()[-1]), all_domains)


def explain(status, all_domains):
    """Prints the state of each domain that was asked for; 0 if all are in."""
    if not status["installed"]:
        print("hakmem is not in: the hook was not loaded before Python began. Is LD_PRELOAD set, and is the")
        print(f"file {_launch.HOOK} there where the program runs?")
        return 1
    bad = 0
    for domain in ("raw", "mem", "obj") if all_domains else ("raw", "arena"):
        holder = status["holder"].get(domain)
        print(f"  {domain}: {status[domain]}" + (f", on top is {holder}" if holder else ""))
        bad += status[domain] not in ("replaced", "covered", "wrapped")
    if bad:
        print("displaced: PYTHONMALLOC, PYTHONDEVMODE and -X dev put Python's own allocators back")
    if status["why"]:
        print(f"  note: {status['why']}")
    return 1 if bad else 0


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def caught(pid, signal):
    """Whether the process has a handler: without one the signal would end it."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal - 1) & 1)
    return False


def trim(pid):
    """Resident bytes before and after."""
    if not caught(pid, _hakmem.TRIM_SIGNAL):
        raise ValueError("not a program that was started under hakmem, or not ready yet")
    before = resident(pid)
    os.kill(pid, _hakmem.TRIM_SIGNAL)
    last, since, end = before, time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(CALM / 10)
        now = resident(pid)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > CALM:
            break
    return before, last
