"""A limit that was asked for holds, or Python does not start: one line says why, and the status is not 0."""

import os
import shutil
import subprocess
import sys
import unittest

import hakmem
from support import ProgramCase, preloaded

TAKE = "x = bytearray(200 << 20); print('taken')"


def limited(**more):
    return preloaded(all_domains=True, limit=64 << 20) | more


class Refuse(ProgramCase):
    def refused(self, env, why, *flags, **options):
        done = self.python(*flags, "-c", TAKE, env=env, check=False, **options)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\Ahakmem: [^\n]*{why}[^\n]*\n\Z")

    def test_a_setting_that_is_none(self):
        (self.folder / "learned").write_text("nothing of the kind\n")
        for name, value, why in (
            ("HAKMEM_LIMIT", "64Mx", "is no size"),
            ("HAKMEM_LIMIT", "0.0001K", "is no size"),
            ("HAKMEM_RESERVE", "64Mx", "is no size"),
            ("HAKMEM_RESERVE", "1M", "4M to 1T expected"),
            ("HAKMEM_DOMAINS", "every", "raw or all expected"),
            ("HAKMEM_LABELS", "line", "off, native or site expected"),
            ("HAKMEM_MODE", "quick", "none of balanced"),
            ("HAKMEM_PROFILE", "often", "is no size"),
            ("HAKMEM_PROFILE_WINDOW", "5s", "there is no profile"),
            ("HAKMEM_LIVE", "maybe", "on, off or a path"),
            ("HAKMEM_POLICY", "missing", "missing: No such file"),
            ("HAKMEM_LEARN", "learned", "learned:1: "),
        ):
            with self.subTest(name, value=value):
                self.refused(limited(**{name: value}), why)
                without_limit = {k: v for k, v in limited(**{name: value}).items() if k != "HAKMEM_LIMIT" or k == name}
                self.refused(without_limit, why)

    def test_modes_that_learn_need_a_file(self):
        for mode in ("learning", "research"):
            self.refused(preloaded() | {"HAKMEM_MODE": mode}, "--learn FILE")

    def test_run_too(self):
        for option, why in (("--policy=missing", "missing: No such file"), ("--learn=/no/such/x", "No such file")):
            done = self.hakmem("run", "--all", "--limit=64M", option, "--report=", "-c", TAKE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(why, done.stderr)

    def test_lines_without_all_domains(self):
        self.refused(preloaded(labels="site", limit=64 << 20), "need")

    def test_units_as_containers_write_them(self):
        for size in ("64Mi", "65536Ki", "0.0625gi", "64MiB"):
            done = self.python("-c", TAKE, env=limited(HAKMEM_LIMIT=size), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"\nMemoryError\n\Z")
        done = self.hakmem("run", "--all", "--limit", "64Mi", "--report=", "-c", TAKE, check=False)
        self.assertRegex(done.stderr, r"\nMemoryError\n\Z")

    def test_allocators_that_python_takes_back(self):
        taken = "Python has taken another allocator for raw"
        for name, value in (("PYTHONMALLOC", "debug"), ("PYTHONMALLOC", "malloc"), ("PYTHONDEVMODE", "1")):
            with self.subTest(name, value=value):
                self.refused(limited(**{name: value}), taken)
        self.refused(preloaded(limit=64 << 20) | {"PYTHONMALLOC": "malloc"}, taken)
        self.refused(limited(), taken, "-X", "dev")
        done = self.python("-c", TAKE, env=preloaded() | {"PYTHONMALLOC": "malloc"})
        self.assertEqual((done.stdout, done.stderr), ("taken\n", ""))

    def test_who_passes_on_takes_nothing_back(self):
        for name in ("PYTHONTRACEMALLOC", "PYTHONFAULTHANDLER"):
            done = self.python("-c", TAKE, env=limited(**{name: "1"}), check=False)
            self.assertRegex(done.stderr, r"\nMemoryError\n\Z")

    def test_no_room_for_the_heap(self):
        """Between the address space in which the loader is done and that in which Python starts."""
        command = ["sh", "-c", 'ulimit -v "$1"; exec "$2" -S -c "print(\'started\')"', "sh"]
        refused = []
        for kib in range(6 << 10, 128 << 10, 512):
            done = subprocess.run(
                [*command, str(kib), sys.executable], env=limited(), capture_output=True, text=True, timeout=60
            )
            if done.stdout == "started\n":
                break
            if "no memory for a context" in done.stderr:
                refused.append((done.returncode, done.stdout, done.stderr.count("\n")))
        self.assertEqual(done.stderr, "")
        self.assertEqual(set(refused), {(2, "", 1)})

    def test_files_of_the_package_that_are_not_there(self):
        """The loader warns of a file that it cannot preload, and the program would run without its limit."""
        package = self.folder / "hakmem"
        shutil.copytree(os.path.dirname(hakmem.__file__), package, symlinks=False)
        env = {"PYTHONPATH": str(self.folder), "PATH": os.environ["PATH"]}
        for name, options in (("libhakmem_pymalloc.so", ["--malloc"]), ("libhakmem_pyhook.so", [])):
            (package / name).unlink()
            for size in ("64M", "64Mi"):  # the second one is for the whole parser, which loads the hook itself
                command = ["-m", "hakmem", "run", "--limit", size, *options, "--report=", "-c", TAKE]
                done = self.python(*command, env=env, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stdout, "")
                self.assertIn(name, done.stderr)
            done = self.python("-m", "hakmem", "run", "--limit=64M", *options, "-c", TAKE, env=env, check=False)
            self.assertEqual(done.stderr, f"hakmem: {package / name} is not there, or cannot be read; install hakmem again\n")

    def test_a_hook_that_was_not_preloaded(self):
        env = {k: v for k, v in limited().items() if k != "LD_PRELOAD"}
        done = self.python("-c", "import hakmem", env=env)
        self.assertEqual(done.stderr, "hakmem: HAKMEM_LIMIT holds for nothing: the hook was not preloaded (LD_PRELOAD)\n")
        done = self.python("-c", "import hakmem", env=env | {"HAKMEM_LIMIT": "0"})
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
