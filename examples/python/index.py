"""An index of Python sources: which names are defined where, and which are used most.

    python -m hakmem run --all --labels native examples/python/index.py [folder [files]]

Without a folder it reads the standard library. Under hakmem the index has a label of its own."""

import ast
import collections
import contextlib
import sys
import sysconfig
from pathlib import Path

try:
    from hakmem import label
except ImportError:
    # The program runs without hakmem, too.
    def label(_name):
        return contextlib.nullcontext()


def definitions(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("stdlib"))
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    where = collections.defaultdict(list)
    uses = collections.Counter()
    files = sorted(folder.glob("*.py"))[:most]
    for path in files:
        tree = ast.parse(path.read_bytes(), str(path))
        with label("index"):
            for name, line in definitions(tree):
                where[name].append((path.name, line))
            uses.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    common = ", ".join(f"{name} {count}" for name, count in uses.most_common(3))
    print(f"{len(files)} files, {len(where)} names defined, used most: {common}")
    # A program that goes on running, as a service would, holds its index.
    return where, uses


kept = main()
