"""The table of docs/internals/portability.md says of each platform and part what the tests do: test_portability.py SOURCE"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
PAGE = (SOURCE / "docs/internals/portability.md").read_text()
CASES = "".join((SOURCE / f"tests/install/{name}.sh").read_text() for name in ("configure", "systems"))
CI, LONG, RUNNER, COMPILES, NO = "tests run by CI", "tests run by tier long", "tests run under wine or qemu", "compiles", "no"
HOME = "Linux x86-64, glibc"
# What switches a part off.
OPTIONS = {"Lua": "LUA", "Python": "PYTHON", "WASM hosts": "WASM", "malloc shim": "PRELOAD", "reports": "REPORT"}


def table(heading):
    """The rows of the table that begins with this word, as lists of cells."""
    lines = iter(PAGE.splitlines())
    for line in lines:
        if line.startswith(f"| {heading} "):
            rows = [line]
            next(lines)
            for line in lines:
                if not line.startswith("|"):
                    break
                rows.append(line)
            yield [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def case(name):
    """What configure.sh does for a test install_NAME."""
    found = re.search(rf"^    (?:\w+ \| )*{name}(?: \| \w+)*\)\n(.*?)^        ;;$", CASES, re.M | re.S)
    return found and found[1]


def names_of_long(text):
    """The tests that a CMakeLists.txt leaves to the tier long, but for packages, which are of no platform."""
    calls = re.findall(r"hakmem_leave_to_long\(([^)]*)\)", text)
    return {name for call in calls for name in call.split() if not name.startswith(("install_rock_", "install_stranger_"))}


class Portability(unittest.TestCase):
    def setUp(self):
        (self.head, *self.rows), (_, *self.tests) = table("platform")
        self.cells = {(row[0], part): cell for row in self.rows for part, cell in zip(self.head[1:], row[1:])}
        self.assertGreater(len(self.rows), 7)

    def test_cells_have_one_of_five_values(self):
        for key, cell in self.cells.items():
            self.assertIn(cell, (CI, LONG, RUNNER, COMPILES, NO), key)

    def test_each_cell_has_its_test_and_each_test_its_cell(self):
        claimed = {key for key, cell in self.cells.items() if cell != NO and key[0] != HOME}
        self.assertEqual(claimed, {(platform, part) for platform, part, _ in self.tests})

    def test_tests_do_what_the_cells_say(self):
        long = (SOURCE / "tests/install/CMakeLists.txt").read_text()
        for platform, part, text in self.tests:
            cell = self.cells[platform, part]
            name = re.match(r"`install_(\w+)`", text)[1]
            with self.subTest(f"{platform}, {part}: {name}"):
                body = case(name)
                self.assertTrue(body)
                self.assertRegex(long, rf"\b{name}\b")
                emulated = bool(re.search(r"qemu|wine", body))
                self.assertEqual(emulated, cell == RUNNER)
                left_to_long = names_of_long(long)
                if cell in (CI, LONG):
                    self.assertEqual(f"install_{name}" in left_to_long, cell == LONG)

    def test_tests_of_the_tier_long_are_named_with_it(self):
        long = (SOURCE / "tests/install/CMakeLists.txt").read_text()
        left_to_long = names_of_long(long)
        named = re.search(r"^(?:`install_\w+`(?:,| and)?\s)+are in the tier\s+long", PAGE, re.M)
        self.assertTrue(named)
        self.assertEqual(set(re.findall(r"`(install_\w+)`", named[0])), left_to_long)

    def test_a_part_that_compiles_is_one_that_a_test_compiles(self):
        for platform, part, text in self.tests:
            if self.cells[platform, part] == COMPILES and part == "C++ header":
                body = case(re.match(r"`install_(\w+)`", text)[1])
                self.assertIn("c++", body)

    def test_compiled_systems_are_those_of_the_test(self):
        targets = re.search(r"for target in (.*?); do", case("other_systems"))[1].split()
        names = {"x86-64": "x86_64", "macOS": "macos", "FreeBSD": "freebsd", "Windows": "windows-gnu", "aarch64": "aarch64"}
        rows = {"-".join(names[word] for word in reversed(row[0].split())) for row in self.rows if row[1] == COMPILES}
        self.assertEqual(set(targets), rows)

    def test_parts_of_macos_that_compile_are_those_that_the_test_builds(self):
        targets = {"Lua": ("haklua5.4", "hakmem_lua_"), "reports": ("hakmem_command", "hakmem_report_static")}
        for (platform, part), cell in self.cells.items():
            if platform.startswith("macOS") and part in targets and cell == COMPILES:
                for target in targets[part]:
                    self.assertIn(target, case("other_macos"))
        self.assertIn("Nothing ever ran on macOS", PAGE)

    def test_parts_that_other_systems_do_not_have_are_switched_off(self):
        root = (SOURCE / "CMakeLists.txt").read_text()
        off = re.search(r'NOT CMAKE_SYSTEM_NAME STREQUAL "Linux"\)\n    foreach\(part ([\w ]+)\)', root)[1].split()
        both = re.search(r'\(WIN32 OR APPLE\) AND part MATCHES "\^\(([\w|]+)\)\$"', root)[1].split("|")
        for (platform, part), cell in self.cells.items():
            if part in OPTIONS and not platform.startswith("Linux"):
                self.assertIn(OPTIONS[part], off)
                if not (platform.startswith(("Windows", "macOS")) and OPTIONS[part] in both):
                    self.assertEqual(cell, NO, (platform, part))

    def test_each_part_of_a_system_says_so_where_it_lacks_something(self):
        for folder, option in ("lua", "LUA"), ("host", "REPORT"), ("report", "REPORT"):
            text = (SOURCE / f"bindings/{folder}/CMakeLists.txt").read_text()
            for system in "Windows", "macOS":
                self.assertRegex(text, rf'message\(STATUS "hakmem: on ({system}|\$\{{elsewhere\}}) [^"]+', folder)
        self.assertIn("there is no such part", (SOURCE / "CMakeLists.txt").read_text())

    def test_the_workflow_has_a_runner_for_each_system_that_nothing_here_is(self):
        workflow = (SOURCE / ".github/workflows/test.yml").read_text()
        job = re.search(r"^  native:\n(.*?)(?=^  \w)", workflow, re.M | re.S)[1]
        self.assertIn("run: tests/core/native.sh ", job)
        for system in "macos", "windows":
            self.assertRegex(job, rf"runner: {system}-")
        self.assertIn("add_test(NAME core_native ", (SOURCE / "tests/CMakeLists.txt").read_text())
        # What else macOS has.
        self.assertRegex(job, r"if: runner.os == 'macOS'\n(?: .*\n)*? +tests/install/native.sh ")
        self.assertIn("add_test(NAME install_native\n", (SOURCE / "tests/install/CMakeLists.txt").read_text())

    def test_guides_name_the_processors_of_the_table(self):
        for page, part in ("wasm", "WASM hosts"), ("wasmtime", "WASM hosts"), ("python-labels", "Python"), ("python-profile", "Python"):
            text = (SOURCE / f"docs/guide/{page}.md").read_text()
            self.assertEqual("aarch64" in text, self.cells["Linux aarch64", part] != NO, page)

    def test_all_systems_of_the_core_are_in_the_table(self):
        system = (SOURCE / "core/src/base/system.h").read_text()
        words = {"__linux__": "Linux", "__APPLE__": "macOS", "__FreeBSD__": "FreeBSD", "_WIN32": "Windows"}
        for macro in re.findall(r"defined\((_\w+)\)", system):
            self.assertTrue(any(row[0].startswith(words[macro]) for row in self.rows), macro)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
