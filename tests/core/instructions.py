#!/usr/bin/env python3
"""Instructions of hakmem's hot paths, counted by callgrind, against a golden table.

A function's instructions include what it calls and its own return. N rounds and 2N rounds are run; the
difference over the number of calls leaves out the start of the program. A compiler without a table is held to
the ratios of the others: how many times an allocation each figure is.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROUNDS, BATCH = 2000, 8
# The figure that others are a multiple of, and what a compiler without a table may be above the worst of the others.
UNIT, ROOM = "alloc small", 0.25

# name of the figure: (function counted, work of hotpath, its calls a round)
FIGURES = {
    "alloc small": ("hak_alloc", "pairs-small", BATCH),
    "alloc label small": ("hak_alloc_cs", "labelled-small", BATCH),
    "free small": ("hak_free", "pairs-small", BATCH),
    "free sized small": ("hak_free_sized", "labelled-small", BATCH),
    "realloc in place small": ("hak_realloc", "resize-small", BATCH),
    "alloc run": ("hak_alloc", "pairs-run", BATCH),
    "alloc label run": ("hak_alloc_cs", "labelled-run", BATCH),
    "free run": ("hak_free", "pairs-run", BATCH),
    "free sized run": ("hak_free_sized", "labelled-run", BATCH),
    "realloc in place run": ("hak_realloc", "resize-run", BATCH),
    "realloc sized in place": ("hak_realloc_sized", "resize-sized-run", BATCH),
    "alloc shared small": ("hak_alloc", "shared-small", BATCH),
    "free shared small": ("hak_free", "shared-small", BATCH),
    "alloc shared run": ("hak_alloc", "shared-run", BATCH),
    "free shared run": ("hak_free", "shared-run", BATCH),
    # By each of 16 threads.
    "alloc crowded small": ("hak_alloc", "crowded-small", BATCH),
    "free crowded small": ("hak_free", "crowded-small", BATCH),
    "alloc profiled small": ("hak_alloc", "profiled-small", BATCH),
    "free profiled small": ("hak_free", "profiled-small", BATCH),
    "alloc guarded small": ("hak_alloc", "guarded-small", BATCH),
    "free guarded small": ("hak_free", "guarded-small", BATCH),
    "block size small": ("hak_block_size", "size-small", BATCH),
    "alloc swept": ("hak_alloc", "sweep", BATCH),
    "free sweep": ("hak_free_sized", "sweep", BATCH),
    "free sweep sampled": ("hak_free_sized", "sweep-sampled", BATCH),
    "alloc random mix": ("hak_alloc", "mix", BATCH),
    "free random mix": ("hak_free", "mix", BATCH),
    # Of a context whose learner has frozen: the same.
    "alloc frozen mix": ("hak_alloc", "mix-frozen", BATCH),
    "free frozen mix": ("hak_free", "mix-frozen", BATCH),
    "alloc packed mix": ("hak_alloc", "mix-packed", BATCH),
    "free packed mix": ("hak_free", "mix-packed", BATCH),
    "realloc in place packed": ("hak_realloc", "resize-packed", BATCH),
    "realloc packed small": ("hak_realloc", "resize-packed-small", BATCH),
    # The mean of the first 3000 pairs of contexts with 20 and with 200 blocks of 16 to 515 bytes.
    "alloc packed young 20": ("hak_alloc", "young-20", BATCH),
    "free packed young 20": ("hak_free", "young-20", BATCH),
    "alloc packed young 200": ("hak_alloc", "young-200", BATCH),
    "free packed young 200": ("hak_free", "young-200", BATCH),
    # The same in the heap of a thread of a shared context.
    "alloc packed shared 20": ("hak_alloc", "young-shared-20", BATCH),
    "free packed shared 20": ("hak_free", "young-shared-20", BATCH),
    "alloc packed shared 200": ("hak_alloc", "young-shared-200", BATCH),
    "free packed shared 200": ("hak_free", "young-shared-200", BATCH),
    # Of the first 48 pairs, before magazines; of the first 3000 under a limit of 200 KiB, where there are none.
    "alloc packed first": ("hak_alloc", "first-20", BATCH),
    "free packed first": ("hak_free", "first-20", BATCH),
    "alloc packed limited": ("hak_alloc", "limited-20", BATCH),
    "free packed limited": ("hak_free", "limited-20", BATCH),
    # Of contexts of 1000 blocks, which are cut, units included; and what a new context takes.
    "alloc packed grow": ("hak_alloc", "grow-1000", BATCH),
    "context new": ("hak_ctx_new", "grow-20", BATCH / 20),
}


def collected(program, function, works):
    """The instructions of the function in each (work, rounds). One start of callgrind counts all: each runs in a process
    of its own, which says at its end what was collected."""
    done = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            f"--toggle-collect={function}",
            program,
            *(str(word) for pair in works for word in pair),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [int(count) for count in re.findall(r"Collected : (\d+)", done.stderr)]
    # The first process collects nothing, and says so last.
    if done.returncode or len(found) != len(works) + 1 or found.pop() != 0:
        sys.exit(f"instructions: {function} failed:\n{done.stderr}")
    return dict(zip(works, found))


def measure(program):
    counts = {}
    for function in {function for function, _, _ in FIGURES.values()}:
        works = dict.fromkeys(work for of, work, _ in FIGURES.values() if of == function)
        both = [(work, rounds) for work in works for rounds in (ROUNDS, 2 * ROUNDS)]
        counts[function] = collected(program, function, both)
    table = {}
    for name, (function, work, calls) in FIGURES.items():
        once, twice = (counts[function][work, rounds] for rounds in (ROUNDS, 2 * ROUNDS))
        table[name] = round((twice - once) / (ROUNDS * calls), 2)
    return table


def compare(measured, golden, tolerance, at_most):
    """Prints the table; whether no figure is beyond the tolerance (a fraction, and at least half an
    instruction) above its golden value, or, unless at_most, so far below that the table is out of date."""
    good = True
    for name, value in measured.items():
        wanted = golden.get(name)
        room = max(0.5, tolerance * (wanted or 0))
        verdict = "ok"
        if wanted is None:
            verdict = "not in the table: run with --update"
        elif value > wanted + room:
            verdict = "longer"
        elif value < wanted - room and not at_most:
            verdict = "shorter: run with --update"
        good &= verdict == "ok"
        print(f"{name:24} {value:8.2f}  golden {'-' if wanted is None else f'{wanted:.2f}':>8}  {verdict}")
    return good


def frozen_is_free(measured):
    """Whether a context whose learner has frozen takes what one without a learner takes, to a hundredth."""
    free = True
    for what in ("alloc", "free"):
        learned, without = measured[f"{what} frozen mix"], measured[f"{what} random mix"]
        if abs(learned - without) >= 0.01:
            print(f"{what}: {learned:.3f} with a learner that has frozen, {without:.3f} without one")
            free = False
    return free


def by_ratios(tables, measured):
    """A table for a compiler that has none: the largest ratio to UNIT of any table, times the UNIT measured."""
    table = {
        name: max(t[name] / t[UNIT] for t in tables.values() if name in t) * measured[UNIT]
        for name in measured
        if any(name in t for t in tables.values())
    }
    table[UNIT] = max(t[UNIT] for t in tables.values())
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="the built program hotpath")
    parser.add_argument("--golden", required=True, type=Path, help="the table, a JSON file")
    parser.add_argument("--compiler", required=True, help="key of the table, such as 'GNU 12'")
    parser.add_argument("--tolerance", type=float, default=0.02, help="fraction allowed (0.02)")
    parser.add_argument("--at-most", action="store_true", help="shorter is good, too")
    parser.add_argument("--update", action="store_true", help="write what was measured into the table")
    options = parser.parse_args()
    tables = json.loads(options.golden.read_text()) if options.golden.exists() else {}
    measured = measure(options.program)
    if options.update:
        tables[options.compiler] = measured
        options.golden.parent.mkdir(parents=True, exist_ok=True)
        options.golden.write_text(json.dumps(tables, indent=4, sort_keys=True) + "\n")
    free = frozen_is_free(measured)
    if options.compiler in tables:
        return 0 if compare(measured, tables[options.compiler], options.tolerance, options.at_most) and free else 1
    if not tables:
        sys.exit(f"instructions: {options.golden} has no table at all; run with --update")
    print(f"instructions: no figures for {options.compiler}; the ratios are those of {', '.join(sorted(tables))}")
    return 0 if compare(measured, by_ratios(tables, measured), ROOM, at_most=True) and free else 1


if __name__ == "__main__":
    sys.exit(main())
