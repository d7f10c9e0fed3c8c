#!/usr/bin/env python3
"""A machine of examples/vms as its users run it: its output with its own allocator and with hakmem, its limit, its
report; and what hakmem costs, by the instructions that callgrind counts.

test_program.py outputs PROGRAM FILE [REFERENCE...]   REFERENCE: a command that prints the same for FILE
test_program.py suite PROGRAM LEAST FILE...           the machine's own tests: the same with each, and at least so
                                                      many succeed
test_program.py costs PROGRAM FILE OWN LABELS         most percent of hakmem beside its own allocator, and of labels
                                                      beside hakmem without

NAME_own, beside PROGRAM if that is NAME_hak, is a program for the machine as it is, for `-a own`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = ("own", "plain", "labels")


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)


def check(ok, what):
    if not ok:
        sys.exit(f"failed: {what}")


def start(program, kind, file, *options):
    own = Path(program.removesuffix("_hak") + "_own")
    return [own if kind == "own" and own.exists() else program, *options, "-a", kind, file]


def outputs(program, file, *reference):
    results = {kind: run(*start(program, kind, file, "-l")) for kind in KINDS}
    own = results["own"]
    check(own.returncode == 0 and len(own.stdout) > 20, f"the program runs: {own.stderr.decode()}")
    for kind, result in results.items():
        check(result.returncode == 0, f"-a {kind}: {result.stderr.decode()}")
        check(result.stdout == own.stdout, f"-a {kind} prints the same")
        check(b"resident at most" in result.stderr, f"-a {kind} reports")
        check((b"live bytes" in result.stderr) == (kind == "labels"), f"-a {kind}: the table of labels")
    if reference and shutil.which(reference[0]):
        expected = run(*reference, file)
        check(expected.returncode == 0, f"{reference[0]}: {expected.stderr.decode()}")
        check(expected.stdout == own.stdout, f"{reference[0]} prints the same")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        check(run(program, "-r", path, file).returncode == 0, "a report")
        labels = json.loads(path.read_text())["contexts"][0]["labels"]
        check(len(labels) > 3, f"the labels of the report: {labels}")
        check(b"No such file" in run(program, "-r", Path(folder, "none/x"), file).stderr, "no place for the report")
        check(run(program, "-a", "own", "-r", path, file).returncode == 2, "no report of another allocator")

    refused = run(program, "-m", "300K", file)
    check(refused.returncode == 1, f"a limit ends the program: {refused.returncode}")
    check(re.search(rb"memory|alloc failed|DoubleError", refused.stderr), f"a limit is told: {refused.stderr}")
    for bad in (["-m", "0", file], ["-a", "other", file], ["-a", "own", "-m", "1M", file], []):
        check(run(program, *bad).returncode == 2, f"{bad} is refused")
    check(run(program, "/nowhere").returncode == 2, "a file that is not there")


def suite(program, least, *files):
    good = 0
    for file in files:
        own, ours = (run(*start(program, kind, file)) for kind in ("own", "labels"))
        check((own.returncode, own.stdout) == (ours.returncode, ours.stdout), f"{file}: {own} {ours}")
        good += own.returncode == 0
    print(f"{good} of {len(files)} tests succeed, with each")
    check(good >= int(least), f"{least} tests succeed")


# callgrind counts each byte of "rep movsb" as an instruction: memcpy is to copy with loops.
LOOPS = {
    "GLIBC_TUNABLES": ":".join(f"glibc.cpu.x86_rep_{name}_threshold=0x10000000" for name in ("movsb", "stosb"))
}


# The table that -l prints at the end is not among the costs of labels while a program runs.
def instructions(program, file, kind):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", *start(program, kind, file)]
        subprocess.run(command, check=True, capture_output=True, timeout=600, env={**os.environ, **LOOPS})
        return int(re.search(r"^totals: (\d+)", out.read_text(), re.M)[1])


def costs(program, file, most_own, most_labels):
    if not shutil.which("valgrind"):
        print("valgrind is not there")
        sys.exit(77)
    own, plain, labels = (instructions(program, file, kind) for kind in KINDS)
    beside_own, of_labels = 100 * (plain / own - 1), 100 * (labels / plain - 1)
    print(f"own {own}  plain {plain} ({beside_own:+.2f} %)  labels {labels} ({of_labels:+.2f} % more)")
    check(beside_own < float(most_own), f"hakmem costs at most {most_own} % more than its own allocator")
    check(of_labels < float(most_labels), f"labels cost at most {most_labels} %")


if __name__ == "__main__":
    {"outputs": outputs, "suite": suite, "costs": costs}[sys.argv[1]](*sys.argv[2:])
