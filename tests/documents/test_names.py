"""Tests are named as docs/TESTING.md says: test_names.py SOURCE CTEST TREE"""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, CTEST, TREE = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
TESTS = SOURCE / "tests"
# Areas of ctest whose tests are in a folder of another name, or with another label.
FOLDERS = {"one": "onefile"}
LABELS = {"one": "core"}
CASE = re.compile(r"TEST_CASE\(\s*\"((?:[^\"\\]|\\.)*)\"")


def sources():
    return [path for path in TESTS.rglob("*") if path.suffix in (".c", ".cpp", ".py", ".mjs", ".rs")]


def labels_of_tests():
    """(name, labels) of each test of ctest."""
    listed = subprocess.run([CTEST, "--test-dir", TREE, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    return [
        (test["name"], next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), []))
        for test in json.loads(listed.stdout)["tests"]
    ]


class Names(unittest.TestCase):
    def test_the_word_test_comes_first_in_names_of_files(self):
        self.assertEqual([str(path) for path in sources() if path.stem.endswith("_test")], [])

    def test_each_test_file_is_run(self):
        for path in sources():
            if not path.name.startswith("test_"):
                continue
            topic = path.stem.removeprefix("test_")
            folders = [folder for folder in path.parents if folder == TESTS or TESTS in folder.parents]
            builds = [folder.glob(kind) for folder in folders for kind in ("*.txt", "*.cmake", "*.py")]
            text = "".join(file.read_text() for files in builds for file in files if file != path)
            named = [rf"\b{re.escape(path.name)}\b", rf"(?<![\w-]){re.escape(topic)}(?![\w-])"]
            found = re.search("|".join([*named, re.escape(f"test_*{path.suffix}")]), text)
            self.assertTrue(found, f"no build file names {path}")

    def test_cases_are_sentences(self):
        count = 0
        for path in TESTS.rglob("*.cpp"):
            for name in CASE.findall(path.read_text()):
                count += 1
                self.assertGreaterEqual(len(name.split()), 3, f"{path}: {name}")
        self.assertGreater(count, 300)

    def test_no_script_hides_a_module_of_python(self):
        """A script's folder comes first where it and its neighbours look for modules."""
        scripts = [path for folder in ("tests", "scripts") for path in (SOURCE / folder).rglob("*.py")]
        self.assertGreater(len(scripts), 50)
        self.assertEqual([str(path) for path in scripts if path.stem in sys.stdlib_module_names], [])

    def reasons(self, name):
        """The lines of a file of tests that wait for a later tier: a regular expression, then why."""
        found = {}
        for line in (TESTS / name).read_text().splitlines():
            if not line.startswith("#"):
                pattern, _, reason = line.partition(" ")
                self.assertTrue(pattern.startswith("^"), line)
                self.assertGreaterEqual(len(reason.split()), 2, line)
                found[re.compile(pattern)] = reason
        return found

    def test_tests_that_wait_for_a_later_tier_have_a_reason(self):
        later = self.reasons("later.txt")
        self.assertGreater(len(later), 5)
        # ctest takes them as one expression, and one with more groups than nine leaves out nothing, without an error.
        self.assertLess(sum(pattern.groups for pattern in later), 10)
        reasons = self.reasons("long.txt")
        self.assertGreater(len(reasons), 2)
        for name, labels in labels_of_tests():
            if "long" in labels:
                self.assertTrue(any(pattern.match(name) for pattern in reasons), name)
            # Of the others some tests stay: of an interpreter, or without sanitizers.
            elif any(pattern.match(name) for pattern in reasons if pattern.pattern.endswith("$")):
                self.fail(f"{name} has no label 'long'")

    def test_names_of_ctest_begin_with_the_area(self):
        tests = labels_of_tests()
        self.assertGreater(len(tests), 20)
        for name, labels in tests:
            area = name.partition("_")[0]
            with self.subTest(name):
                if not {"bench", "demo"} & set(labels):
                    self.assertTrue((TESTS / FOLDERS.get(area, area)).is_dir())
                    self.assertIn(LABELS.get(area, area), labels)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
