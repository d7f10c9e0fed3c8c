#!/usr/bin/env python3
"""layers.py folder: the folders of the Python binding are in layers. A file includes what is in its own
folder or in those below it, and no two files include each other, be it by way of others."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

FOLDERS = ["base", "heap", "native", "lines", "profile", "paths", "hook", "module", "malloc"]  # the lowest first
# They know of each other only what hooks with lines, which are in paths/, bring together.
APART = {("lines", "native")}
SOURCE = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else Path(__file__).parents[2] / "bindings/python"


def includes(source):
    """From each file, header and source as one, to those that it includes."""
    found = {}
    for path in sorted(source.glob("*/*.[ch]")):
        text = path.read_text()
        names = re.findall(r'^\s*#\s*include\s+"(\w+)/(\w+)\.h"', text, re.MULTILINE)
        here = found.setdefault((path.parent.name, path.stem), set())
        here.update(name for name in names if name[0] in FOLDERS and name != (path.parent.name, path.stem))
    return found


def upward(found):
    return [
        (of, name)
        for of, names in found.items()
        for name in sorted(names)
        if FOLDERS.index(name[0]) > FOLDERS.index(of[0]) or (of[0], name[0]) in APART
    ]


def circle(found):
    """What is left when who includes nothing that is left goes, again and again."""
    left = {of: set(names) for of, names in found.items()}
    while gone := {of for of, names in left.items() if not names & left.keys()}:
        left = {of: names for of, names in left.items() if of not in gone}
    return sorted(left)


class Layers(unittest.TestCase):
    def test_no_file_includes_one_of_a_higher_folder(self):
        found = includes(SOURCE)
        self.assertEqual({of[0] for of in found}, set(FOLDERS))
        self.assertEqual(upward(found), [])

    def test_no_circle(self):
        self.assertEqual(circle(includes(SOURCE)), [])

    def test_offences_are_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {
                "base/a.c": '#include "base/a.h"\n#include "base/b.h"\n',
                "base/a.h": "",
                "base/b.h": '#  include "base/a.h"\n',
                "lines/c.c": '#include "native/n.h"\n#include "hook/h.h"\n#include "base/a.h"\n',
            }.items():
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            found = includes(Path(folder))
            self.assertEqual(
                upward(found), [(("lines", "c"), ("hook", "h")), (("lines", "c"), ("native", "n"))]
            )
            self.assertEqual(circle(found), [("base", "a"), ("base", "b"), ("lines", "c")])


if __name__ == "__main__":
    unittest.main()
