#!/usr/bin/env python3
"""circles.py project [--argue MODULE:MODULE]... [folder...]

The modules of a binding do not know each other in a circle. A module is NAME.c, NAME.h or both, or NAME.py of the
package. It knows the modules whose headers it includes, those that define what its functions name, and those that it
imports. layers.py checks the same of the core, where the modules have an order and objects are there to ask."""

import re
import sys
from pathlib import Path

FOLDERS = """bindings/callsite bindings/common bindings/host/src bindings/lua/launcher bindings/lua/src bindings/preload/src
    bindings/python bindings/report/src bindings/wasm-host/src bindings/wasm-host/wamr bindings/wasm-host/wasm2c
    bindings/wasm-host/wasmtime""".split()
# What a module knows although that closes a circle, with the reason. An argument that is no longer needed goes.
ARGUED = {
    "bindings/lua/launcher": {
        ("run", "repl"): "-i begins the loop, and runs its lines as it runs the script",
    },
    "bindings/lua/src": {
        # What a state needs of its lua_Alloc changes while it runs: whoever changes that asks alloc.c, which chooses
        # among the functions of all parts.
        **{("alloc", part): "" for part in "end label profile/live profile/profile refuse shared state".split()},
        # state.h has the way of a block, whose slow sides lie in the parts; state.c makes and ends states of them.
        **{("state", part): "" for part in "end label limit profile/profile refuse shared".split()},
        ("label", "profile/profile"): "labels and profiles share one lua_Alloc, which is written once",
        ("shared", "label"): "labels are switched on under the lock of a shared state",
        # One lesson teaches the threads, the instructions and the keys of a runtime, on the same scratch state.
        ("profile/key", "profile/thread"): "",
        ("profile/key", "profile/quick"): "",
        ("profile/pc", "profile/thread"): "",
        ("profile/trace", "profile/snap"): "where a trace is left is part of what is learnt of traces",
        ("profile/trace", "profile/snap_learn"): "the same",
        ("profile/snap_way", "profile/snap"): "a header beside its source, for the ways that snapshots can be laid out",
        ("profile/key", "profile/snap"): "the key of compiled code is the instruction that its snapshot gives",
        ("profile/live", "profile/json"): "who looks on gets a report, which says who looks on",
    },
    "bindings/wasm-host/wasm2c": {
        ("stack", "memory"): "memory.c knows whether faults become traps, and makes sure of the stack itself",
    },
    # A tenant ends what is its own. What is its own knows whom it belongs to.
    "bindings/wasm-host/src": {
        **{("tenant", part): "" for part in "account memory profile spare".split()},
        ("profile", "frames"): "the numbers of functions are a part of a profile, declared with it",
    },
}

QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
IMPORT = re.compile(r"^\s*from hakmem import ([\w, ]+)|^\s*from hakmem\.(\w+) import", re.M)
# At the beginning of a line, in a source: a function with its body, and an object.
FUNCTION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][\w \t*()]*?\b(h[a-z]+_\w+)\s*\([^;{}]*\)\s*\{", re.M)
OBJECT = re.compile(r"^(?!static\b|typedef\b|extern\b|return\b)[A-Za-z_][\w \t*()]*?[ *](h[a-z]+_\w+)\s*(?:\[[^\]]*\]\s*)*"
                    r"(?:__attribute__\(\(.*?\)\)\s*)?[=;]", re.M)


def bodies(text):
    """What lies between the braces of functions, those of a header included, without the words of declarations."""
    depth, start = 0, None
    for found in re.finditer(r"[{}]", text):
        if found[0] == "{":
            if depth == 0 and text[: found.start()].rstrip().endswith((")", "=")):
                start = found.end()
            depth += 1
        else:
            depth = max(depth - 1, 0)
            if depth == 0 and start is not None:
                yield text[start : found.start()]
                start = None


class Folder:
    def __init__(self, path):
        self.path = path
        self.files = [file for file in sorted(path.rglob("*")) if file.suffix in (".c", ".h", ".py")]
        self.known = {self.module(file) for file in self.files}
        self.texts = {}
        for file in self.files:
            text = file.read_text()
            self.texts[file] = text if file.suffix == ".py" else QUOTED.sub('""', COMMENT.sub(" ", text))
        self.homes = {}
        for file in self.files:
            if file.suffix == ".c":
                for name in FUNCTION.findall(self.texts[file]) + OBJECT.findall(self.texts[file]):
                    self.homes.setdefault(name, set()).add(self.module(file))

    def module(self, file):
        # A file of these folders has the same functions for another system.
        return re.sub("(^|/)(darwin|elsewhere|windows)/", r"\1", file.relative_to(self.path).with_suffix("").as_posix())

    def edges(self):
        """{(module, module that it knows): what shows that}"""
        edges = {}
        for file in self.files:
            own = self.module(file)
            knows = self.imports(file) if file.suffix == ".py" else [*self.includes(file), *self.names(file)]
            for module, what in knows:
                if module != own:
                    edges.setdefault((own, module), what)
        return edges

    def imports(self, file):
        for several, one in IMPORT.findall(self.texts[file]):
            for name in re.findall(r"\w+", several) + [one]:
                module = self.module(file.with_name(f"{name}.py"))
                if module in self.known:
                    yield module, name

    def includes(self, file):
        for included in INCLUDE.findall(file.read_text()):
            for base in (file.parent, self.path):
                header = base / included
                if header.is_file() and header.resolve().is_relative_to(self.path.resolve()):
                    yield self.module(self.path / header.resolve().relative_to(self.path.resolve())), included
                    break

    def names(self, file):
        for body in bodies(self.texts[file]):
            for name in set(re.findall(r"\bh[a-z]+_\w+", body)) & self.homes.keys():
                for home in self.homes[name]:
                    yield home, name


def reach(edges):
    """{module: all that it knows, through others too}"""
    direct = {}
    for a, b in edges:
        direct.setdefault(a, set()).add(b)
    all_of = {}
    for first in direct:
        seen, ahead = set(), [first]
        while ahead:
            for module in direct.get(ahead.pop(), ()):
                if module not in seen:
                    seen.add(module)
                    ahead.append(module)
        all_of[first] = seen
    return all_of


def main():
    project, *rest = sys.argv[1:]
    argued = {}
    while rest[:1] == ["--argue"]:
        argued[tuple(rest[1].split(":"))] = ""
        del rest[:2]
    bad = False
    for name in rest or FOLDERS:
        folder = Folder(Path(project) / name)
        if not folder.files:
            sys.exit(f"circles: {name}: there are no modules")
        exceptions = {pair for where, pairs in ARGUED.items() if where == name for pair in pairs} | argued.keys()
        edges = folder.edges()
        left = {pair: what for pair, what in edges.items() if pair not in exceptions}
        knows = reach(left)
        for (a, b), what in sorted(left.items()):
            if a in knows.get(b, ()):
                bad = True
                print(f"circles: {name}: {a} knows {b}, which knows it: {what}")
        for a, b in sorted(exceptions):
            if (a, b) not in edges or a not in knows.get(b, ()):
                bad = True
                print(f"circles: {name}: {a} and {b} need no argument any more")
    sys.exit(bad)


main()
