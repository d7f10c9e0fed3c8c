"""Each number of hakmem/tuning.h has a range, a row of the benchmarks, a test and a line in docs/guide/modes.md:
test_tuning.py SOURCE"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
HEADER = (SOURCE / "core/include/hakmem/tuning.h").read_text()
STRUCT = re.search(r"struct hak_tuning \{(.*?)\n\};", HEADER, re.DOTALL).group(1)
# (comment, name) of each field but `size`.
FIELDS = re.findall(r"/\*((?:(?!\*/).)*)\*/\s*(?:size_t|uint64_t) (\w+);", STRUCT, re.DOTALL)


def first_cells(path):
    return {line.split("|")[1].strip() for line in path.read_text().splitlines() if line.startswith("| ")}


class Tuning(unittest.TestCase):
    def fields(self):
        self.assertEqual(len(FIELDS), len(re.findall(r"(?:size_t|uint64_t) \w+;", STRUCT)) - 1)
        return [(" ".join(comment.replace("*", " ").split()), name) for comment, name in FIELDS]

    def test_each_says_its_range(self):
        for comment, name in self.fields():
            self.assertRegex(comment, r"\d+ to \d|Up to \d|Any;|\d on[.;]| 1; HAK_NONE|\d or \d", name)

    def test_each_names_a_row_that_is_measured(self):
        rows = first_cells(SOURCE / "docs/measurements/core.md")
        for comment, name in self.fields():
            row = re.search(r"Row: ([\w ]+)", comment)
            self.assertTrue(row, name)
            if not row.group(1).startswith("none"):
                self.assertTrue(any(cell.startswith(row.group(1)) for cell in rows), name)

    def test_each_is_in_the_table_of_modes(self):
        named = first_cells(SOURCE / "docs/guide/modes.md")
        for _, name in self.fields():
            self.assertIn(f"`{name}`", named)

    def test_each_has_a_test_case(self):
        cases = [case for path in (SOURCE / "tests/core").glob("*.cpp")
                 for case in re.findall(r'TEST_CASE\("([^"]*)"\)\n\{(.*?)\n\}', path.read_text(), re.DOTALL)]
        for _, name in self.fields():
            self.assertTrue(any(name in title + body for title, body in cases), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
