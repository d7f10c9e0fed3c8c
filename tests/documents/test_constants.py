"""Numbers in documents and headers that sources or golden counts decide: test_constants.py SOURCE"""

import json
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
PARTS = {2: "half", 4: "quarter", 8: "eighth", 16: "sixteenth"}


def text(path):
    return " ".join((SOURCE / path).read_text().replace("\n *", " ").split())


def number(path, pattern):
    return int(re.search(pattern, text(path)).group(1))


class Constants(unittest.TestCase):
    def test_labels(self):
        most = number("core/include/hakmem/hakmem.h", r"#define HAK_LABELS_MAX (\d+)")
        self.assertEqual(number("docs/internals/labels.md", r"a number from 1 to (\d+) with a name"), most)

    def test_early_huge_pages(self):
        part = PARTS[number("core/src/space/chunks.c", r"EARLY = (\d+)")]
        self.assertRegex(text("docs/internals/allocation.md"), rf"and from an? {part} of that on while chunks are filled")
        self.assertRegex(text("docs/guide/modes.md"), rf"an? {part} of it where a heap grows fast")

    def test_ladder(self):
        head = (SOURCE / "core/src/api/ladder.h").read_text().split("*/")[0]
        headers = "".join(path.read_text() for path in (SOURCE / "core/src").glob("*/*.h"))
        functions = re.findall(r"\bhk_\w+", head)
        self.assertGreater(len(functions), 8)
        for function in functions:
            self.assertRegex(headers, rf"[ *]{function}\([\w ]*hak_ctx \*", function)

    def test_waits_of_locks(self):
        for what, name in ("spins", "SPINS"), ("yields", "YIELDS"):
            said = number("docs/internals/shared-contexts.md", rf"{what} (\d+) times")
            self.assertEqual(said, number("core/src/base/os_lock.c", rf"\b{name} = (\d+)"))

    def test_workload_counted(self):
        table = text("core/src/base/settings.h")
        deep = re.search(r'\(magazine, [^"]*"[^"]*" OR_NONE,[^"]* (\d+), (\d+)\) ', table).groups()
        largest = re.search(r'\(magazine_most, [^"]*"[^"]*" OR_NONE,[^"]* KIB\((\d+)\), KIB\((\d+)\)\) ', table).groups()
        kept, most = re.search(r"balanced and lean keep (\d+) of a size at hand, and none above (\d+) KiB",
                               text("core/include/hakmem/hakmem.h")).groups()
        self.assertEqual((kept, kept, most, most), deep + largest)

    def test_fast(self):
        header = text("core/include/hakmem/hakmem.h")
        said = [float(n) for n in re.search(
            r"(\d+) to (\d+) instructions in a local context, (\d+) to (\d+) in a shared one, (\d+) to (\d+) for an "
            r"allocation where guard pages are drawn. Where a young heap packs its small blocks an allocation takes up "
            r"to (\d+), a free up to (\d+), a realloc in place up to (\d+); until 64 blocks were freed, and under a "
            r"limit below 256 KiB, an allocation takes (\d+) to (\d+) on average, a free up to (\d+)\. \"constant\" is "
            r"at most (\d+)", header).groups()]
        packed = dict(zip(("alloc", "free", "realloc"), said[6:9]))
        early = {"alloc": said[9:11], "free": (0, said[11])}
        for counts in json.loads((SOURCE / "tests/golden/instructions.json").read_text()).values():
            for name, count in counts.items():
                if name == "context new":
                    low, high = 0, said[12]
                elif re.search("packed (first|limited|grow)", name):
                    low, high = early[name.split()[0]]
                elif "packed" in name:
                    low, high = 0, packed[name.split()[0]]
                else:
                    at = 2 if "shared" in name else 4 if name.startswith("alloc guarded") else 0
                    low, high = said[at:at + 2]
                self.assertTrue(low <= count <= high, f"{name}: {count} is not from {low} to {high}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
