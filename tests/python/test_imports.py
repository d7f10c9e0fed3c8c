"""What imports hold, by module: the frame that names the module, and the sums in reports."""

import json
import os
import subprocess
import unittest

from support import FREE_THREADED, ProgramCase, preloaded

COMMAND = os.environ.get("HAKMEM_COMMAND")
KB = 1000


@unittest.skipIf(FREE_THREADED, "a free-threaded build has no lines")
class Imports(ProgramCase):
    def setUp(self):
        super().setUp()
        self.script("import package.inner\nOWN = [bytearray(5000) for _ in range(100)]\n", "outer.py")
        (self.folder / "package").mkdir()
        self.script("HERE = [bytearray(5000) for _ in range(60)]\n", "package/__init__.py")
        self.script("DATA = [bytearray(5000) for _ in range(200)]\nimport outer\n", "package/inner.py")

    def report(self, program, **options):
        file = self.folder / "r.json"
        done = self.python(self.script(program), env=preloaded(all_domains=True, report=str(file), **options))
        self.assertEqual(done.stderr, "")
        return json.loads(file.read_text())["contexts"][0]

    def rows(self, context):
        rows = {row["name"]: row for row in context["imports"]}
        self.assertEqual(len(rows), len(context["imports"]), "each module once")
        return rows

    def assertBetween(self, low, n, high):
        self.assertLessEqual(low, n)
        self.assertLessEqual(n, high)

    def test_sums_of_an_exact_profile(self):
        context = self.report("import outer\nafter = [bytearray(5000) for _ in range(300)]\n", profile="exact")
        rows = self.rows(context)
        # What the first import compiles and keeps in caches is its own, too.
        self.assertBetween(500 * KB, rows["outer"]["live_bytes"], 900 * KB)
        self.assertBetween(1000 * KB, rows["package.inner"]["live_bytes"], 1150 * KB)
        self.assertBetween(300 * KB, rows["package"]["live_bytes"], 400 * KB)
        self.assertBetween(1800 * KB, rows["outer"]["total_bytes"], 2600 * KB)
        self.assertBetween(1300 * KB, rows["package.inner"]["total_bytes"], 1600 * KB)
        self.assertGreaterEqual(rows["package"]["live_blocks"], 60)
        frames = context["frames"]
        # The own bytes are those of the stacks with an import in them; a stack has them once.
        of_imports = [s for s in context["stacks"] if any(frames[n]["function"].startswith("import ") for n in s["frames"])]
        own = sum(row["live_bytes"] for row in rows.values())
        self.assertLess(abs(sum(s["live_bytes"] for s in of_imports) - own), 100)
        for row in rows.values():
            self.assertGreaterEqual(row["total_bytes"], row["live_bytes"])
        # Behind the import system, and before who imports.
        (largest,) = sorted(of_imports, key=lambda s: -s["live_bytes"])[:1]
        names = [frames[n]["function"] for n in largest["frames"]]
        at = names.index("import package.inner")
        self.assertEqual((names[at - 1], names[at + 1]), ("_find_and_load", "<module>"))
        self.assertEqual([n for n in names if n.startswith("import ")], ["import package.inner", "import outer"])
        self.assertNotIn("file", frames[largest["frames"][at]])

    def test_a_sampled_profile(self):
        rows = self.rows(self.report("import outer\n", profile="4K"))
        self.assertBetween(700 * KB, rows["package.inner"]["live_bytes"], 1400 * KB)

    def test_a_program_without_a_profile_has_none(self):
        self.assertNotIn("imports", self.report("import outer\n", labels="site"))

    @unittest.skipUnless(COMMAND, "the command hakmem was not built")
    def test_the_text_of_a_report(self):
        self.report("import outer\n", profile="exact")
        text = subprocess.run([COMMAND, "report", "-n", "50", str(self.folder / "r.json")], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"\n +live +and its imports +import of\n(.*\n)*.* package\.inner\n(.*\n)*.* outer\n(.*\n)*.* package\n")
        text = self.hakmem("report", str(self.folder / "r.json")).stdout
        self.assertRegex(text, r"\n  import of package\.inner: [\d.,]+ [KM]iB, with its imports 1\.\d\d MiB\n")


if __name__ == "__main__":
    unittest.main()
