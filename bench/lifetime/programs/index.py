"""A code index: modules of the standard library are parsed and compiled, their trees go, names and code stay.
A trough comes after each package."""

import ast
import pathlib
import random
import sys

import lifetime_python

random.seed(int(sys.argv[1]))
files = [p for p in sorted(pathlib.Path(ast.__file__).parent.glob("*.py")) if p.stat().st_size < 30000]
index, codes = {}, {}


def names_of(tree):
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append((node.lineno, len(node.body), ast.get_docstring(node)))
    return found


for _ in range(6):
    trees = {}
    for path in random.sample(files, 8):
        text = path.read_text()
        trees[path.stem] = ast.parse(text)
        if random.random() < 0.5:
            codes[path.stem] = compile(trees[path.stem], str(path), "exec")
    for name, tree in trees.items():
        index[name] = names_of(tree)
    del trees, tree, text
    lifetime_python.mark()
