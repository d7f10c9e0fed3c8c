#!/usr/bin/env python3
"""own_warnings.py compile_commands.json source-folder

What hakmem itself is made of is compiled with warnings: -w hides from one compiler what the next one refuses. Third
parties' sources, which are fetched or generated, may be compiled without. C of hakmem's own is also refused where gcc 14
and clang 16 refuse it."""

import json
import shlex
import sys
from pathlib import Path

REFUSED = ["implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types"]


def main():
    commands, source = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    build = commands.resolve().parent
    checked, wrong = 0, []
    for entry in json.loads(commands.read_text()):
        file = (Path(entry["directory"]) / entry["file"]).resolve()
        inside = file.is_relative_to(source) and not file.is_relative_to(build)
        if not inside or file.is_relative_to(source / "build"):
            continue
        flags = shlex.split(entry["command"])
        name = file.relative_to(source)
        checked += 1
        if "-w" in flags:
            wrong.append(f"{name}: -w")
        if file.suffix == ".c":
            wrong += [f"{name}: without -Werror={flag}" for flag in REFUSED if f"-Werror={flag}" not in flags]
    for line in sorted(set(wrong)):
        print(line)
    if checked < 50:
        sys.exit(f"warnings: only {checked} files of the source folder are in {commands}")
    sys.exit(bool(wrong))


main()
