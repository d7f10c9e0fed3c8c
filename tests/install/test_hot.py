#!/usr/bin/env python3
"""test_hot.py PROGRAM NAMES...: the functions of cmake/Hot.cmake lie side by side in a program that is linked with the
static libraries, and the lists know the functions that there are."""
import re
import subprocess
import sys
from pathlib import Path

ROOM = 144 << 10  # of code, in the program

program, *lists = sys.argv[1:]
nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
places = {}
for address, name in re.findall(r"^([0-9a-f]+) [tTwW] ([\w.]+)$", nm, re.M):
    places.setdefault(name, []).append(int(address, 16))
found = []
for path in lists:
    names = re.findall(r"^[A-Za-z_][\w.]*$", Path(path).read_text(), re.M)
    there = [name for name in names if name in places]
    # inlining differs between compilers and runtimes
    assert len(there) > len(names) * 0.6, (path, sorted(set(names) - set(there)))
    found += [places[name][0] for name in there if len(places[name]) == 1]
found.sort()
assert len(found) > 100, len(found)
spread = found[-1] - found[0]
assert spread < ROOM, f"{len(found)} functions lie over {spread} bytes: run scripts/hot-functions"
