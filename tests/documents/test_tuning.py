"""Settings in the header and in docs/guide/modes.md are those of the table in core/src/base/settings.h, and each has a
row of the benchmarks and a test: test_tuning.py SOURCE. `test_tuning.py SOURCE --update` writes the table of modes.md."""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
MODES = SOURCE / "docs/guide/modes.md"
HEADER = (SOURCE / "core/include/hakmem/tuning.h").read_text()
STRUCT = re.search(r"struct hak_tuning \{(.*?)\n\};", HEADER, re.DOTALL).group(1)
# The comment of each field but `size`.
FIELDS = {name: " ".join(comment.replace("*", " ").split()) for comment, name in
          re.findall(r"/\*((?:(?!\*/).)*)\*/\s*(?:size_t|uint64_t) (\w+);", STRUCT, re.DOTALL)}
BY = {"HEAP": "context", "OWN": "context", "SPACE": "space"}


def value(text):
    """A default, as documents write it."""
    call = re.fullmatch(r"(\w+)\((\d+)\)", text)
    if call:
        return f"{call[2]} {dict(KIB='KiB', MIB='MiB', SEC='s')[call[1]]}"
    return "none" if text == "NONE" else text


def arguments(text):
    """What stands in the parentheses at the beginning of the text, in parts; and what is behind them."""
    parts, depth, quoted = [""], 0, False
    for i, c in enumerate(text):
        quoted ^= c == '"'
        depth += 0 if quoted else (c == "(") - (c == ")")
        if depth == 0:
            return [part.strip() for part in parts], text[i + 1:]
        if c == "," and depth == 1 and not quoted:
            parts.append("")
        elif i:
            parts[-1] += c


class Setting:
    def __init__(self, by, name, _in, _none, when, numbers, words, *defaults):
        self.name, self.numbers, self.words = name, numbers, re.match('"(.*?)"', words)[1]
        self.or_none = "OR_NONE" in words
        *self.modes, counted, lean_counted = map(value, defaults)
        self.counted = [counted, *self.modes[1:3], lean_counted]
        self.read_by = BY[by] + (", once" if when == "ONCE" else "")

    def cells(self, remark):
        return [f"`{self.name}`", self.read_by, *self.modes, remark]

    def default(self):
        """As the header says it."""
        if len(set(self.modes)) == 1:
            return f"{self.modes[0]} in each mode"
        counted = f"; counted {', '.join(self.counted)}" if self.counted != self.modes else ""
        return ", ".join(self.modes) + counted


def settings():
    source = (SOURCE / "core/src/base/settings.h").read_text()
    table = re.search(r"#define HK_SETTINGS\(HEAP, SPACE, OWN\)(.*?)\n/\*", source, re.DOTALL)[1].replace("\\\n", "").strip()
    found = []
    while table:
        by, row = re.match(r"(\w+)(.*)", table).groups()
        cells, rest = arguments(row)
        table = rest.strip()
        found.append(Setting(by, *cells))
    return found


def rows(text):
    """The first cell of each row of the table of settings, and all of them."""
    found = {}
    for line in text.splitlines():
        if re.match(r"\| `[a-z_]+` ", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found[cells[0].strip("`")] = cells
    return found


def first_cells(path):
    return {line.split("|")[1].strip() for line in path.read_text().splitlines() if line.startswith("| ")}


def update():
    text, now = MODES.read_text(), rows(MODES.read_text())
    head = ["field", "read by", "balanced", "minimal", "fast", "lean", "remarks"]
    table = [head, *(setting.cells(now[setting.name][-1] if setting.name in now else "") for setting in settings())]
    widths = [max(len(row[i]) for row in table) for i in range(len(head) - 1)] + [0]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * (max(width, 7) + 2) for width in widths) + "|")
    MODES.write_text(re.sub(r"\| field .*?\n(?=\n)", lambda _: "\n".join(lines) + "\n", text, flags=re.DOTALL))


class Tuning(unittest.TestCase):
    def test_each_field_has_a_setting(self):
        self.assertEqual(list(FIELDS), [setting.name for setting in settings()])
        self.assertEqual(len(FIELDS), len(re.findall(r"(?:size_t|uint64_t) \w+;", STRUCT)) - 1)

    def test_the_header_says_its_range_and_defaults(self):
        for setting in settings():
            comment = FIELDS[setting.name]
            words = setting.words[0].upper() + setting.words[1:]
            self.assertRegex(comment, rf"(^|\. ){re.escape(words)}(\.|;|,? given)", setting.name)
            said = setting.default()
            self.assertIn(said[0].upper() + said[1:], comment[0] + re.sub(r"\. (\w)", lambda m: ". " + m[1].upper(), comment),
                          setting.name)

    def test_words_of_a_range_are_its_numbers(self):
        constants = {"HK_PACKED_MOST": 16 << 20, "HK_GUARD_SLOTS_MOST": 65536}
        sizes = {"KIB": 1 << 10, "MIB": 1 << 20}
        for setting in settings():
            call, numbers = re.fullmatch(r"(\w+?)(?:\((.*)\))?", setting.numbers).groups()
            self.assertEqual(call.endswith("OR_NONE"), setting.or_none, setting.name)
            if call == "ANY":
                self.assertIn(setting.words, ("any", "1 on"), setting.name)
                continue
            least, most = (constants.get(n) or eval(re.sub(r"(\w+)\((\d+)\)", lambda m: str(sizes[m[1]] * int(m[2])), n))
                           for n in arguments(f"({numbers})")[0])
            said = [int(n) << (20 if unit else 0) for n, unit in re.findall(r"(\d+)( MiB)?", setting.words.replace("2^30", "1073741824"))]
            if call == "STEPS":
                self.assertEqual(said, list(range(0, most + 1, least)), setting.name)
            else:
                self.assertEqual((said[0] if len(said) > 1 else 1, said[-1]), (least, most), setting.name)

    def test_the_table_of_modes(self):
        now = rows(MODES.read_text())
        for setting in settings():
            self.assertEqual(now[setting.name][:-1], setting.cells("")[:-1], "test_tuning.py SOURCE --update mends that")
            for mode, of_mode, counted in zip(("balanced", "minimal", "fast", "lean"), setting.modes, setting.counted):
                if of_mode != counted:
                    self.assertRegex(now[setting.name][-1], rf"`COUNTED`: {counted} in .*\b{mode}\b", setting.name)

    def test_each_names_a_row_that_is_measured(self):
        measured = first_cells(SOURCE / "docs/measurements/core.md")
        for name, comment in FIELDS.items():
            row = re.search(r"Row: ([\w ]+)", comment)
            self.assertTrue(row, name)
            if not row.group(1).startswith("none"):
                self.assertTrue(any(cell.startswith(row.group(1)) for cell in measured), name)

    def test_each_has_a_test_case(self):
        cases = [case for path in (SOURCE / "tests/core").glob("*.cpp")
                 for case in re.findall(r'TEST_CASE\("([^"]*)"\)\n\{(.*?)\n\}', path.read_text(), re.DOTALL)]
        for name in FIELDS:
            self.assertTrue(any(name in title + body for title, body in cases), name)


if sys.argv[2:] == ["--update"]:
    update()
elif __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
