"""Is hakmem really in?"""

import json
import os
import subprocess
import sys

from hakmem import _api, _launch

PROBE = "import json, hakmem; print(json.dumps(hakmem.status()))"


def check(all_domains, labels):
    """Says what is there; 0 if all of it is hakmem's, and labels are those that were asked for, if any."""
    if any(k.startswith("HAKMEM_") for k in os.environ) or os.path.basename(_launch.HOOK) in os.environ.get(
        "LD_PRELOAD", ""
    ):
        print("this process was started with the variables of hakmem")
        here = os.environ.get("HAKMEM_DOMAINS", "raw") == "all"
        return explain(_api.status(), all_domains or here, labels)
    print("this process was started without hakmem; a new one with it:")
    environment = _launch.environment(print, all_domains=all_domains, labels=labels)
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    if done.stderr:
        print(done.stderr.rstrip())
    if done.returncode != 0:
        print(f"it ended with status {done.returncode}")
        return 1
    # What start-up files print comes before.
    return explain(json.loads(done.stdout.splitlines()[-1]), all_domains, labels)


def explain(status, all_domains, labels):
    """Prints the state of each domain that was asked for; 0 if all are in, with these labels."""
    if not status["installed"]:
        print("hakmem is not in: the hook was not loaded before Python began. Is LD_PRELOAD set, and is the")
        print(f"file {_launch.HOOK} there where the program runs?")
        return 1
    bad = 0
    for domain in ("raw", "mem", "obj") if all_domains else ("raw", "arena"):
        holder = status["holder"].get(domain)
        print(f"  {domain}: {status[domain]}" + (f", on top is {holder}" if holder else ""))
        bad += status[domain] not in ("replaced", "covered", "wrapped")
    if "displaced" in status.values():
        print("displaced: PYTHONMALLOC, PYTHONDEVMODE and -X dev put Python's own allocators back")
    if labels is not None:
        print(f"  labels: {status['labels']}" + ("" if status["labels"] == labels else f", not {labels}"))
        bad += status["labels"] != labels
    if status["why"]:
        print(f"  note: {status['why']}")
    return 1 if bad else 0
