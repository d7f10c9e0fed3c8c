"""Each public header says how stable it is, and the documents say the same: test_stability.py SOURCE"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
LINE = re.compile(r"^ \* STABILITY  (Stable|Experimental)(?:\.|: .*|, as .*)", re.M)
ROW = re.compile(r"^\| (stable|experimental)\s*\| (.*?)\s*\|", re.M)


def headers():
    folders = [SOURCE / "core/include", *sorted((SOURCE / "bindings").glob("**/include"))]
    return {p.name: p.read_text() for folder in folders for p in sorted(folder.glob("hakmem/*.h*"))}


def classes():
    """The class of each header by its name."""
    found = {}
    for name, text in headers().items():
        lines = LINE.findall(text[: text.index("*/")])
        found[name] = lines[0].lower() if len(lines) == 1 else f"{len(lines)} lines STABILITY"
    return found


class Stability(unittest.TestCase):
    def test_each_public_header_has_one_class(self):
        found = classes()
        self.assertGreater(len(found), 15)
        self.assertEqual({n: c for n, c in found.items() if c not in ("stable", "experimental")}, {})

    def test_a_stable_header_includes_stable_ones_alone(self):
        found = classes()
        for name, text in headers().items():
            if found[name] == "stable":
                for other in re.findall(r"^#include [<\"]hakmem/([\w.]+)[>\"]", text, re.M):
                    self.assertEqual(found[other], "stable", f"{name} includes {other}")

    def test_the_page_on_building_lists_them(self):
        page = (SOURCE / "docs/guide/building.md").read_text()
        listed = {name: kind for kind, cell in ROW.findall(page) for name in re.findall(r"`([\w.]+)`", cell)}
        self.assertEqual(listed, classes())

    def test_the_binary_interface_that_is_compared_has_each_function(self):
        """scripts/abi --update writes the files."""
        for file, folder in (("hakmem", "core"), ("hakmem-report", "bindings/host")):
            text = "".join(p.read_text() for p in sorted((SOURCE / folder / "include/hakmem").glob("*.h")))
            declared = re.findall(r"^HAK_API[^;{]*?\b(hak_\w+)\(", text, re.M)
            golden = (SOURCE / f"tests/golden/{file}.abi").read_text()
            listed = re.findall(r"^\S.*?\b(hak_\w+)\(.*\) @HAKMEM", golden, re.M)
            self.assertEqual(listed, sorted(set(declared)), f"tests/golden/{file}.abi")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
