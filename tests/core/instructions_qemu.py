#!/usr/bin/env python3
"""instructions_qemu.py QEMU PROGRAM OBJECT GOLDEN [--update]: instructions of hakmem's hot paths on another processor.

qemu-user runs hotpath.c one instruction at a time and writes each with its function; what is counted for a call is all
between two instructions of hotpath's own functions, which OBJECT defines. The golden table has the figures of
instructions.py that a host meets most, and that are the same from the first rounds on: qemu takes a second for thousands
of calls. Prints each beside that of x86-64."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 100
NAMES = """alloc small|free small|alloc label small|free sized small|realloc in place small|alloc run|free run
alloc shared small|free shared small|alloc swept|free sweep""".replace("\n", "|").split("|")


def figures():
    """The table FIGURES of instructions.py, which is a program."""
    text = (HERE / "instructions.py").read_text()
    return eval(re.search(r"^FIGURES = (\{.*?^\})", text, re.M | re.S)[1], {"BATCH": 8})


def counted(qemu, program, own, work, rounds):
    """Instructions by the function that hotpath called."""
    totals, inside = {}, None
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run([*qemu, "-singlestep", "-d", "exec,nochain", "-D", log.name, program, work, str(rounds)],
                       check=True, stdout=subprocess.DEVNULL)
        for line in log:
            if line.startswith("Trace "):
                symbol = line.split()[-1]
                inside = None if symbol in own else inside or symbol
                if inside:
                    totals[inside] = totals.get(inside, 0) + 1
    return totals


def main():
    qemu, program, source, golden_file = sys.argv[1:5]
    qemu = qemu.split()
    listed = subprocess.run(["nm", "--defined-only", "--format=posix", source], check=True, capture_output=True, text=True)
    own = {line.split()[0] for line in listed.stdout.splitlines()}
    runs, measured = {}, {}
    for name in NAMES:
        function, work, calls = figures()[name]
        if work not in runs:
            runs[work] = [counted(qemu, program, own, work, n) for n in (ROUNDS, 2 * ROUNDS)]
        once, twice = (totals.get(function, 0) for totals in runs[work])
        measured[name] = round((twice - once) / (ROUNDS * calls), 2)
    if sys.argv[5:] == ["--update"]:
        Path(golden_file).write_text(json.dumps(measured, indent=4) + "\n")
    golden = json.loads(Path(golden_file).read_text())
    here = json.loads((HERE.parent / "golden/instructions.json").read_text())
    x86 = next(table for compiler, table in here.items() if compiler.startswith("GNU"))
    wrong = 0
    for name, value in measured.items():
        verdict = "ok" if abs(value - golden.get(name, -1)) <= max(0.5, 0.01 * value) else f"golden: {golden.get(name)}"
        wrong += verdict != "ok"
        print(f"{name:26} {value:8} x86-64 {x86[name]:8} {verdict}")
    sys.exit(wrong)


main()
