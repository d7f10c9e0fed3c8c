#!/usr/bin/env python3
"""layers.py nm source-folder object...

The folders of the core are in layers: a file may include, and call, what is in its own folder and in those
below it. The modules of some folders are in an order, too: a module is NAME.c, NAME.h or both, and it knows the modules
before it. Checked in the sources (#include "folder/file.h") and in the objects (undefined symbols). A header of each
folder says what lives there. scripts/amalgamate has the same order. The host's error callback is called in one place, in
the highest folder."""

import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ["base", "space", "heap", "profile", "shared", "learn", "api"]  # the lowest first
# The modules of a folder, the lowest first.
MODULES = {
    "heap": """bin ctx bins account units metadata packed_label slab row packed_group packed_groups packed_large
        magazine run packed batch label big_map big_cache big reclaim guard asked block canary placement numbers guide
        context""".split()
}
# Upward all the same: (file, what it includes or calls). The list may only become shorter: what is no longer true goes.
EXCEPTIONS = {tuple(line.split()) for line in """
    heap/batch.c heap/label.h
    heap/big.c heap/reclaim.h
    heap/big.c hk_reclaim_charge
    heap/big_cache.c hk_big_unmap
    heap/big_cache.h heap/big.h
    heap/big_map.c heap/big.h
    heap/block.c heap/canary.h
    heap/block.c hk_canary_whole
    heap/block.c hk_canary_write
    heap/guard.c hk_found_wrong
    heap/label.c heap/reclaim.h
    heap/label.c hk_reclaim_charge
    heap/magazine.c heap/batch.h
    heap/magazine.c heap/packed.h
    heap/magazine.c heap/run.h
    heap/magazine.c hk_batches_return
    heap/magazine.c hk_found_wrong
    heap/magazine.c hk_packed_limited
    heap/magazine.c hk_packed_put
    heap/magazine.c hk_packed_scarce
    heap/magazine.c hk_run_give
    heap/magazine.c hk_run_keep_more
    heap/metadata.c hk_units_take_as
    heap/numbers.c heap/guide.h
    heap/packed.c heap/label.h
    heap/packed.c hk_found_wrong
    heap/packed_group.h heap/packed.h
    heap/packed_groups.c hk_found_wrong
    heap/packed_groups.c hk_packed_limited
    heap/packed_groups.c hk_packed_scarce
    heap/packed_groups.c hk_units_take_as
    heap/row.c hk_found_wrong
    heap/run.c heap/label.h
    heap/run.c hk_found_wrong
    heap/run.c hk_units_take_as
    heap/slab.c heap/magazine.h
    heap/slab.c heap/packed.h
    heap/slab.c heap/row.h
    heap/slab.c heap/run.h
    heap/slab.c hk_found_wrong
    heap/slab.c hk_magazine_flush
    heap/slab.c hk_magazine_widen
    heap/slab.c hk_row_settle_now
    heap/slab.c hk_row_slots
    heap/slab.c hk_units_take_as
    heap/units.c heap/packed.h
    heap/units.c heap/reclaim.h
    heap/units.c hk_reclaim_charge
""".strip().splitlines()}


def rank(folder):
    return FOLDERS.index(folder)


def place(file):
    """Of folder/name.c or .h: its folder's number, and its number in an ordered folder."""
    folder, _, name = file.partition("/")
    order = MODULES.get(folder)
    module = name.partition(".")[0]
    return rank(folder), order.index(module) if order and module in order else 0


def modules_in_no_order(sources):
    for folder, order in MODULES.items():
        there = {path.name.partition(".")[0] for path in (sources / folder).glob("*.[ch]")}
        for module in sorted(there ^ set(order)):
            yield f"{folder}/{module}"


def upward_includes(sources):
    for path in sorted(sources.glob("*/*.[ch]")):
        file = f"{path.parent.name}/{path.name}"
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            if not included.startswith("hakmem/") and place(included) > place(file):
                yield file, included


def symbols(nm, option, objects):
    """(file of the core, symbol) of each object, whose path ends in src/folder/file.c.o."""
    done = subprocess.run([nm, option, "--format=posix", "-A", *objects], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        where, _, rest = line.partition(": ")
        folder, name = where.split("/")[-2:]
        yield f"{folder}/{name.removesuffix('.o')}", rest.split()[0]


def upward_calls(nm, objects):
    home = {symbol: file for file, symbol in symbols(nm, "--defined-only", objects)
            if symbol.startswith("hak_") or symbol.startswith("hk_")}
    if not home:
        sys.exit("layers: nm finds no symbol of the core")
    for file, symbol in symbols(nm, "--undefined-only", objects):
        if symbol in home and place(home[symbol]) > place(file):
            yield file, symbol


def callers_of_the_host(sources):
    """Layers below find what is wrong, and the highest one reports it."""
    for path in sorted(sources.glob("*/*.[ch]")):
        if path.parent.name != FOLDERS[-1] and re.search(r"on_error\s*\(", path.read_text()):
            yield f"{path.parent.name}/{path.name}"


def folders_without_head(sources):
    """One header of each folder begins with what lives there and what it may know."""
    for folder in sorted(path for path in sources.iterdir() if path.is_dir()):
        heads = [path for path in folder.glob("*.h") if path.read_text().startswith(f"/* {folder.name}/: ")]
        if len(heads) != 1:
            yield folder.name, len(heads)


def main():
    nm, sources, *objects = sys.argv[1:]
    upward = {*upward_includes(Path(sources)), *upward_calls(nm, objects)}
    found = sorted(upward - EXCEPTIONS)
    for file, what in found:
        print("layers: upward:", file, what)
    for file, what in sorted(EXCEPTIONS - upward):
        print("layers: no longer upward:", file, what)
        found.append(file)
    for module in modules_in_no_order(Path(sources)):
        print("layers: in no order, or not there:", module)
        found.append(module)
    for file in callers_of_the_host(Path(sources)):
        print("layers: reports an error:", file)
        found.append(file)
    order = re.search(r"^LAYERS = (.*)$", (Path(__file__).parents[2] / "scripts/amalgamate").read_text(), re.MULTILINE)
    if re.findall(r"\w+", order[1]) != FOLDERS:
        print("layers: scripts/amalgamate has them in another order:", order[1])
        found.append("amalgamate")
    for folder, heads in folders_without_head(Path(sources)):
        print(f"layers: {folder}/ has {heads} headers that say what lives there")
        found.append(folder)
    sys.exit(bool(found))


main()
