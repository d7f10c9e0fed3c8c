#!/usr/bin/env python3
"""layers.py nm source-folder [--except FILE:WHAT]... object...

The folders of the core are in layers: a file may include, and call, what is in its own folder and in those
below it. The modules of each folder are in an order, too: a module is NAME.c, NAME.h or both, and it knows the modules
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
    "base": """system machine base classes mask mpsc random sized os os_plain os_posix os_linux os_darwin os_windows os_take
        os_lock patience settings policy policy_text quota real text""".split(),
    "space": "space apply_space bitmap extent calls apart open purge pages extents chunks label_pages create".split(),
    "heap": """bin ctx bins judge account big_map big_cache units metadata bits slab row packed_label label packed_quick
        packed_group put magazine reclaim packed_groups packed_large packed_grow refill packed run run_magazine batch label_on big
        guard asked block holes canary block_free placement apply_heap hints context""".split(),
    "profile": "profile table counted draw windows sample trend growth".split(),
    "shared": "thread_heap remote stray transfer apply_threads enter send steal heaps fork".split(),
    "learn": "bandit learn".split(),
    "api": """errors limits trace policy options profile stats holes learner quarantine trim check guard watch context ladder
        watched alloc owned labels realloc aligned calloc inline windows""".split(),
}
# Upward all the same: (file, what it includes or calls), with the reason. An exception that is no longer needed goes.
EXCEPTIONS = {
    # These free a block as the host does, whatever its kind.
    ("api/watch.c", "hak_free"),
    ("api/quarantine.c", "hak_free_sized"),
    ("api/stats.c", "hak_free"),
}


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


# The files that know the system, and the processor.
OF_THE_SYSTEM = re.compile(r"base/(system\.h|os_(linux|darwin|windows|posix)\.[ch])$")
OF_THE_MACHINE = re.compile(r"base/(system|machine)\.h$")
OF_C = set("assert errno float inttypes limits math stdarg stdatomic stdbool stddef stdint stdio stdlib string".split())
# Macros by which sources ask for a system, and for a processor; and instructions, for which "" makes none.
SYSTEMS = re.compile(r"\b(__linux__|__APPLE__|__FreeBSD__|__MINGW\w+|_WIN32|_WIN64|HK_LINUX|HK_DARWIN|HK_WINDOWS)\b")
PROCESSORS = re.compile(r"\b(__x86_64__|__aarch64__|__riscv|_M_X64|_M_ARM64|__ARM_\w+)\b"
                        r'|\basm\b|__asm__\s*(?:volatile)?\s*\((?!"")')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def knows_the_system(sources):
    """What is no header of C, and questions which system or processor there is."""
    for path in sorted(sources.glob("*/*.[ch]")):
        file = f"{path.parent.name}/{path.name}"
        text = COMMENT.sub("", path.read_text())
        if not OF_THE_SYSTEM.match(file):
            headers = re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.MULTILINE)
            yield from ((file, header) for header in headers
                        if header.removesuffix(".h") not in OF_C and not header.startswith("hakmem/"))
            if not OF_THE_MACHINE.match(file):
                yield from ((file, found) for found in sorted(set(SYSTEMS.findall(text))))
        if not OF_THE_MACHINE.match(file):
            yield from ((file, found[0].strip()) for found in PROCESSORS.finditer(text))


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
    exceptions = set(EXCEPTIONS)
    while objects[:1] == ["--except"]:
        exceptions.add(tuple(objects[1].split(":")))
        del objects[:2]
    upward = {*upward_includes(Path(sources)), *upward_calls(nm, objects)}
    found = sorted(upward - exceptions)
    for file, what in found:
        print("layers: upward:", file, what)
    for file, what in sorted(exceptions - upward):
        print("layers: no longer upward:", file, what)
        found.append(file)
    for file, what in knows_the_system(Path(sources)):
        print("layers: knows the system:", file, what)
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
