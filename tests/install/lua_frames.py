"""Lines and stacks in the profiles of a launcher on another machine: lua_frames.py LINES STACKS, its reports of
frames.lua, by line and sampled."""

import json
import sys


def stacks_of(path):
    with open(path) as file:
        context = json.load(file)["contexts"][0]
    for stack in context["stacks"]:
        frames = [context["frames"][i] for i in stack["frames"]]
        yield stack, [(f["function"], f["file"], f.get("line", 0)) for f in frames if f.get("file")]


def fail(what, path):
    for stack, frames in stacks_of(path):
        print(stack["label"], stack["live_bytes"], frames[:4])
    sys.exit(f"{path}: {what}")


def main(lines, stacks):
    by_line = {}
    for stack, frames in stacks_of(lines):
        if frames:
            key = frames[0][1].rpartition("/")[2], frames[0][2], stack["label"]
            by_line[key] = by_line.get(key, 0) + stack["live_bytes"]
    # frames.lua: 1000 tables of two fields in line 3, an array of 50000 numbers in line 7, closures in line 10.
    for line, label, least in (3, "table", 56000), (3, "hash", 48000), (7, "array", 800000), (10, "closure", 32000):
        if by_line.get(("frames.lua", line, label), 0) < least:
            fail(f"line {line} has too few bytes of {label}", lines)
    found = False
    for stack, frames in stacks_of(stacks):
        functions = [f[0] for f in frames]
        found |= stack["label"] == "table" and "fill" in functions and "outer" in functions[functions.index("fill") :]
    if not found:
        fail("no stack with fill, and outer behind it", stacks)


main(*sys.argv[1:])
