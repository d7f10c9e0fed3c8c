"""Numbers of docs/guide/limits.md are those of the sources, and each has a test: test_limits.py SOURCE"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
PAGE = SOURCE / "docs/guide/limits.md"
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
CONSTANT = re.compile(r"(?:`([\w/.-]+\.[ch])` )?`(\w+)`(?: ([+-]) (\d+))?")
KNOWN = {"PTRDIFF_MAX": (1 << 63) - 1}


def rows(text):
    """The cells of each row of a table."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and cells[0] != "| what":
            yield [cells[0].removeprefix("| "), *cells[1:-1], cells[-1].removesuffix("|").strip()]


def numbers(cell):
    """What a cell says, in bytes where it has units."""
    found = {1 << int(n) for n in re.findall(r"2\^(\d+)", cell)}
    for digits, unit in re.findall(r"(?<![\d.])(\d[\d,]*)(?: (KiB|MiB|GiB|TiB)\b)?", re.sub(r"2\^\d+", "", cell)):
        found.add(int(digits.replace(",", "")) * UNITS[unit])
    return found


class Sources:
    def __init__(self):
        folders = [SOURCE / "core", SOURCE / "bindings"]
        self.texts = {p.relative_to(SOURCE).as_posix(): re.sub(r"/\*.*?\*/", "", p.read_text(), flags=re.S)
                      for folder in folders for p in sorted(folder.rglob("*.[ch]")) if "rust" not in p.parts}

    def value(self, name, file=None):
        """Of a constant, an enumerator or the length of an array; ValueError if there is not one of that name."""
        if not file and name in KNOWN:
            return KNOWN[name]
        patterns = (rf"^#define {name} (.+)$", rf"\b{name} = ([^,;}}\n]+)", rf"\b{name}\[(\d+)\]")
        texts = [self.texts[file]] if file else self.texts.values()
        # A constant is named in its #define or in its enum; a variable of the same name elsewhere is none.
        for pattern in patterns:
            found = {m for text in texts for m in re.findall(pattern, text, re.M)}
            if found:
                break
        if len(found) != 1:
            raise ValueError(f"{name} has {len(found)} values in {file or 'the sources'}")
        words = re.sub(r"\((?:size_t|uintptr_t)\)", "", found.pop())
        words = re.sub(r"\b[A-Za-z_]\w*", lambda m: str(self.value(m[0], None if m[0] in KNOWN or m[0].startswith("HK") else file)), words)
        if not re.fullmatch(r"[\d()+*/<> -]+", words):
            raise ValueError(f"{name} is {words}")
        return eval(words)


class Limits(unittest.TestCase):
    def setUp(self):
        self.rows = list(rows(PAGE.read_text()))
        self.assertGreater(len(self.rows), 35)

    def test_each_row_is_whole(self):
        for row in self.rows:
            self.assertEqual(len(row), 5, row)
            self.assertTrue(all(row), row)

    def test_numbers_are_those_of_the_sources(self):
        sources, count = Sources(), 0
        for what, number, _, constants, _ in self.rows:
            found = CONSTANT.findall(constants)
            self.assertTrue(found or constants == "-", what)
            for file, name, sign, more in found:
                value = sources.value(name, file) + int(f"{sign}{more or 0}")
                self.assertIn(value, numbers(number), f"{what}: {name}")
                count += 1
        self.assertGreater(count, 35)

    def test_each_has_a_test(self):
        for what, _, _, _, test in self.rows:
            file, title = re.fullmatch(r"`([\w/.]+)`: (.+)", test).groups()
            text = (SOURCE / file).read_text()
            begins = f"def {title}(self" if file.endswith(".py") else f'TEST_CASE("{title}'
            self.assertIn(begins, text, f"{what}: {file} has no {title}")

    def test_a_wrong_number_is_seen(self):
        sources = Sources()
        self.assertEqual(sources.value("HAK_LABELS_MAX"), 253)
        self.assertNotIn(253, numbers("254, or 2,530 and 2^53"))
        self.assertEqual(numbers("1 to 131,071, 64 KiB, 2^47"), {1, 131071, 65536, 1 << 47})
        self.assertRaises(ValueError, sources.value, "HK_NO_SUCH_CONSTANT")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
