"""python -m hakmem: what its arguments mean, and what is told where they cannot be followed."""

import random
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import hakmem
from hakmem import _cli, _run
from support import ProgramCase, needs_objects, plain_environment, preloaded

sys.path.append(str(Path(__file__).parents[1] / "support"))
from sizes import NONE, SIZES  # noqa: E402


class Arguments(ProgramCase):
    def test_wrong_arguments_are_named(self):
        for arguments, word in (
            (("run", "--bad", "x.py"), "--bad"),
            (("run",), "no program"),
            (("run", "-m"), "-m"),
            (("run", "-c"), "-c"),
            (("run", "--limit", "lots", "x.py"), "lots"),
            (("run", "--labels", "blue", "x.py"), "blue"),
            (("report", "none.json"), "none.json"),
            (("diff", "none.json", "none.json"), "none.json"),
        ):
            with self.subTest(arguments):
                done = self.hakmem(*arguments, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(word, done.stderr)

    def viewer(self):
        """Whether the package has the program that reads reports: one from a wheel has."""
        return self.python("-c", "import os, hakmem._pass as p; print(os.path.exists(p.VIEWER))").stdout == "True\n"

    def test_the_program_of_the_package_comes_before_that_of_the_path(self):
        if not self.viewer():
            self.skipTest("no program in the package")
        for command in ("html", "pprof", "folded", "speedscope", "prometheus", "top"):
            done = self.hakmem(command, "./none.json", check=False, env={**plain_environment(), "PATH": str(self.folder)})
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, "hakmem: ./none.json: No such file or directory\n")

    def test_commands_of_the_program_hakmem_are_passed_on(self):
        if self.viewer():
            self.skipTest("the package has that program")
        program, none = self.folder / "program", self.folder / "none"
        for folder in (program, none):
            folder.mkdir()
        (program / "hakmem").symlink_to(shutil.which("echo"))
        for command in ("attach", "top", "html", "pprof", "folded", "speedscope", "prometheus"):
            done = self.hakmem(command, "-o", "x.json", "7", env={**plain_environment(), "PATH": f"{none}:{program}"})
            self.assertEqual(done.stdout, f"{command} -o x.json 7\n")
            self.assertIn(f"\n    {command}", self.hakmem("--help").stdout)
        done = self.hakmem("top", "7", check=False, env={**plain_environment(), "PATH": str(none)})
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("there is no program hakmem in PATH", done.stderr)
        # Not the script that pip installs, which would start itself.
        (none / "hakmem").write_text("#!/bin/sh\necho wrong\n")
        (none / "hakmem").chmod(0o755)
        done = self.hakmem("top", "7", check=False, env={**plain_environment(), "PATH": f"{none}:{program}"})
        self.assertEqual(done.stdout, "top 7\n")

    def test_sizes_that_are_none(self):
        for size in NONE:
            with self.subTest(size):
                done = self.hakmem("run", f"--limit={size}", "x.py", check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"'{size}' is", done.stderr.splitlines()[-1])
        done = self.run_script("print(1)", "--limit", "18446744073709551615")
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))

    def test_sizes(self):
        text = "import hakmem; print(hakmem.stats()['hard_limit'])"
        for size, expected in SIZES:
            with self.subTest(size):
                done = self.hakmem("run", "--report", "", "--limit", size, "-c", text)
                self.assertEqual((done.stdout, done.stderr), (f"{expected}\n", ""))
                done = self.python("-c", text, env=preloaded() | {"HAKMEM_LIMIT": size})
                self.assertEqual((done.stdout, done.stderr), (f"{expected}\n", ""))

    def test_reserve(self):
        text = (
            "import hakmem\n"
            "size, = (line.split()[1] for line in open('/proc/self/status') if line.startswith('VmSize'))\n"
            "print(hakmem.stats()['reserved_bytes'], int(size) << 10)"
        )

        def reserved(*options, **variables):
            done = self.hakmem("run", "--report=", *options, "-c", text, **variables)
            return [int(n) for n in done.stdout.split()]

        ours, all_of_it = reserved()
        self.assertLess(ours, 64 << 20)
        for options in (("--reserve=2Gi",), ("--reserve", "2G", "--all")):
            more, whole = reserved(*options)
            self.assertGreaterEqual(more, 2 << 30)
            self.assertGreater(whole - all_of_it, 3 << 29)
        done = self.python("-c", text, env=preloaded() | {"HAKMEM_RESERVE": "512M"})
        self.assertIn(int(done.stdout.split()[0]) >> 20, range(512, 640))
        for size in ("1M", "2T", "many"):
            done = self.hakmem("run", f"--reserve={size}", "-c", "print(1)", check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(size, done.stderr.splitlines()[-1])

    def test_limits_of_the_process_that_the_program_sets(self):
        text = (
            "import resource, sys, threading\n"
            "kind, mib = getattr(resource, sys.argv[1]), int(sys.argv[2])\n"
            "resource.setrlimit(kind, (mib << 20, mib << 20))\n"
            "thread = threading.Thread(target=list); thread.start(); thread.join()\n"
            "import decimal, sqlite3\n"
            "kept = []\n"
            "try:\n"
            "    while len(kept) < 3 * mib: kept.append(bytes(1 << 20))\n"
            "except MemoryError: n, kept = len(kept), None\n"
            "import mmap; mmap.mmap(-1, 20 << 20); print(n)\n"
        )
        for limit, least in (("RLIMIT_AS", 500), ("RLIMIT_DATA", 300)):
            for domains in ((), ("--all",)):
                done = self.hakmem("run", "--report=", *domains, "-c", text, limit, str(least + 300))
                self.assertIn(int(done.stdout), range(least, least + 300), done.stderr)

    def test_what_the_machine_cannot_have_is_refused(self):
        with open("/proc/sys/vm/overcommit_memory") as file:
            if file.read().strip() == "1":
                self.skipTest("the kernel refuses nothing")
        text = "for make in ('[0] * n', 'bytearray(n)', 'b\"x\" * n'):\n"
        text += "    try: eval(make, {'n': 10**13}); print(make)\n"
        text += "    except MemoryError: pass\n"
        for domains in ((), ("--all",)):
            done = self.hakmem("run", "--report=", *domains, "-c", text)
            self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_code(self):
        text = "import sys; print(sys.argv, __name__); sys.exit(5)"
        done = self.hakmem("run", "--report", "", "-c", text, "-c", "--all", check=False)
        self.assertEqual((done.stdout, done.returncode), ("['-c', '-c', '--all'] __main__\n", 5))
        for joined in (["-cimport sys; print(sys.argv[1:])", "x", "y"], ["-mmod", "x", "y"]):
            (self.folder / "mod.py").write_text("import sys; print(sys.argv[1:])")
            done = self.hakmem("run", "--report", "", *joined)
            self.assertEqual(done.stdout, "['x', 'y']\n")

    def test_arguments_of_a_program_are_its_own(self):
        """Those of Python, those that would be ours, and beginnings of ours."""
        program = ["--", "--l", "--all", "-c", "-m", "--limit", "-h", "--", "-"]
        (self.folder / "mod.py").write_text("import sys; print(sys.argv[1:])")
        # The second limit is for the whole parser.
        for limit in ("64M", str(1 << 60)):
            for start in (["mod.py"], ["-mmod"], ["-m", "mod"], ["-c", "import sys; print(sys.argv[1:])"]):
                with self.subTest(limit=limit, start=start):
                    done = self.hakmem("run", "--report", "", f"--limit={limit}", *start, *program)
                    self.assertEqual((done.stdout, done.stderr), (f"{program}\n", ""))
        done = self.hakmem("run", "--report", "", "--", "mod.py", "--all")
        self.assertEqual((done.stdout, done.stderr), ("['--all']\n", ""))

    def test_the_quick_parser_and_the_whole_one_agree(self):
        """What the quick one takes, which imports nothing, means the same to the whole one."""
        words = """
            --all --all=1 --malloc --limit --limit= --limit=64M --limit=1.5G --limit=-1 64M 1k 007 1_0 -5 1T 99999999999
            --labels --labels=site --labels=blue native off --mode --mode=lean --mode=slow --policy --policy=p --learn
            --learn=l --reserve --reserve=16M --reserve=1K --reserve=2T --profile --profile= --profile=64K --profile=exact
            --memory --memory=cheap --memory=64M --memory=4K --price --price=5 --reused --reused=on --reused=x on
            --profile=x exact --profile-window --profile-window=5m --profile-window=off --profile-window=x 5s --live --live= --live=a --live=./a --live=off
            --report --report= --report=- --report=r-%p.json --al --l --bad -h -x -1 - -- -m -c -cpass -mmod x.py a=b =
            """.split() + ["", " ", "a b", "-x y", "--report=a b", "\u0663"]
        absent = {"mode": None, "policy": None, "learn": None, "reserve": None, "profile_window": None, "memory": None, "price": None, "reused": None}
        choose, taken = random.Random(1), set()
        for _ in range(2000):
            line = [*choose.choices(words, k=choose.randrange(5)), choose.choice(["x.py", "-c", "-", "-mmod"])]
            line += choose.choices(words, k=choose.randrange(3))
            quick = _run.parse(line)
            if quick is None:
                continue
            with self.subTest(line):
                args = _cli.parse(["run", *line])  # SystemExit: it does not take them
                self.assertEqual(quick, (args.program, quick[1]))
                self.assertEqual(absent | quick[1], _cli.hook_of(args))
            taken |= {name for name, value in quick[1].items() if value not in (None, False, "-")}
        self.assertEqual(taken, _cli.hook_of(_cli.parse(["run", "x.py"])).keys(), "all options are quick")

    def test_beginnings_of_options_are_none(self):
        for command, meant in (
            (["run", "--lim", "64M", "x.py"], "--limit"),
            (["run", "--al", "x.py"], "--all"),
            (["run", "--l", "x.py"], "--limit or --labels or --learn or --live"),
            (["run", "--limt=64M", "x.py"], "--limit"),
            (["env", "--lim=64M"], "--limit"),
            (["report", "--js", "x.json"], "--json"),
        ):
            done = self.hakmem(*command, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith(f"usage: python -m hakmem {command[0]} "), done.stderr)
            line = rf"\npython -m hakmem {command[0]}: error: unrecognized arguments: {command[1]}[^\n]*, did you mean {meant}\?\n\Z"
            self.assertRegex(done.stderr, line)
        for word in ("--quite-something", "-x"):
            done = self.hakmem("run", word, "x.py", check=False)
            self.assertRegex(done.stderr, rf"error: unrecognized arguments: {word}\n\Z")

    def test_version(self):
        self.assertEqual(self.hakmem("--version").stdout, f"hakmem {hakmem.__version__}\n")
        self.assertRegex(hakmem.__version__, r"^\d+\.\d+\.\d+$")


class Limits(ProgramCase):
    def test_python_does_not_start(self):
        """The program is not begun, and the error says how much it takes."""
        for command in (["run", "--report", "", "--limit", "1K", "-c", "print(1)"], ["env", "--limit", "1k"]):
            done = self.hakmem(*command, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(
                done.stderr,
                r"^hakmem: --limit: Python does not start with 1.0 KiB; it does with [\d.]+ [MK]iB here\n$",
            )

    def test_one_that_is_just_enough(self):
        done = self.hakmem("run", "--report", "", "--limit", "1K", "-c", "print(1)", check=False)
        needed = done.stderr.split(" does with ")[1].split(" here")[0].replace(" ", "")
        done = self.hakmem("run", "--report", "", "--limit", needed, "-c", "print(1)", check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1\n", ""))

    def test_a_start_that_fails_for_another_reason_is_no_matter_of_the_limit(self):
        """A start-up file that ends the interpreter."""
        (self.folder / "sitecustomize.py").write_text(
            "import os\nif '-c' in __import__('sys').orig_argv: os._exit(3)"
        )
        path = f"{self.folder}:{hakmem.__path__[0]}/.."
        done = self.hakmem(
            "run", "--report", "", "--limit", "32M", "-c", "print(1)",
            env=plain_environment(PYTHONPATH=path), check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "", ""))

    def test_told_by_the_hook(self):
        done = self.python("-c", "print(1)", env=preloaded() | {"HAKMEM_LIMIT": "1k"}, check=False)
        self.assertEqual(done.stdout, "")
        self.assertIn("hakmem: Python does not start with a limit of 1024 bytes", done.stderr)

    def test_a_limit_without_the_hook_is_an_error(self):
        text = """
            import hakmem
            hakmem.limit(None)
            try:
                hakmem.limit(64 << 20)
            except RuntimeError as error:
                print(error)
        """
        done = self.python(self.script(text))
        self.assertIn("hakmem serves no domain", done.stdout)
        wrapped = "import hakmem; hakmem.install('all', 'wrap')\n" + "hakmem.limit(64 << 20)"
        done = self.python("-c", wrapped, check=False)
        self.assertIn("hakmem serves no domain", done.stderr)


class Missing(ProgramCase):
    def test_python_says_it_alone(self):
        for program in (
            ["none.py"],
            ["no/such/folder/x.py"],
            ["-m", "no_such_module"],
            ["-m", "no_such.module"],
        ):
            with self.subTest(program):
                alone = self.python(*program, check=False)
                under = self.hakmem("run", *program, check=False)
                self.assertEqual(
                    (under.returncode, under.stdout, under.stderr),
                    (alone.returncode, alone.stdout, alone.stderr),
                )

    def test_programs_that_are_there(self):
        (self.folder / "folder").mkdir()
        (self.folder / "folder" / "__main__.py").write_text("print(7)")
        for program in (["folder"], ["-m", "folder"]):
            self.assertEqual(self.hakmem("run", "--report", "", *program).stdout, "7\n")
        self.assertEqual(self.hakmem("run", "--report", "", "-", input="print(8)").stdout, "8\n")


class Labels(ProgramCase):
    def test_lines_without_all_domains_are_an_error(self):
        for command in (
            ["run", "--labels", "site", "x.py"],
            ["env", "--labels", "site"],
            ["check", "--labels", "site"],
        ):
            done = self.hakmem(*command, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^hakmem: --labels site needs --all: [^\n]*\n$")
        done = self.python("-c", "print(1)", env=preloaded(labels="site"), check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hakmem: HAKMEM_LABELS=site: this needs all domains .*; Python is not started\n$")
        done = self.python("-c", "import hakmem; hakmem.install(labels='site')", check=False)
        self.assertIn("RuntimeError: labels 'site' need all domains", done.stderr)

    @needs_objects
    def test_check(self):
        done = self.hakmem("check", "--all", "--labels", "site")
        self.assertIn("  labels: site\n", done.stdout)
        native = preloaded(all_domains=True, labels="native")
        self.assertIn("  labels: native\n", self.hakmem("check", "--labels", "native", env=native).stdout)
        done = self.hakmem("check", "--all", "--labels", "site", env=native, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("  labels: native, not site\n", done.stdout)

    def test_check_of_all_domains_where_there_are_not_all(self):
        done = self.hakmem("check", "--all", env=preloaded(), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "(?s)raw: replaced.*obj: default")
        self.assertNotIn("displaced", done.stdout)


class Environment(ProgramCase):
    def test_a_second_one_leaves_nothing_of_the_first(self):
        first = self.hakmem(
            "env", "--all", "--limit", "90M", "--labels", "native", "--report", "a-%p.json"
        ).stdout
        second = self.hakmem("env").stdout
        show = 'import hakmem, os; print(hakmem.status()["mem"], hakmem.status()["labels"], hakmem.stats()["hard_limit"])'
        done = subprocess.run(
            ["sh", "-c", f"{first}\n{second}\n{sys.executable} -c '{show}'"],
            env=plain_environment(),
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        self.assertEqual(done.stdout, "default off 0\n", done.stderr)
        self.assertEqual(self.reports(), [])

    def test_in_a_shell_that_a_program_under_hakmem_started(self):
        """What runs there is no child of that program any more."""
        lines = self.hakmem("env", "--report", "r.json").stdout
        subprocess.run(
            ["sh", "-c", f"{lines}\n{sys.executable} -c 'print(1)'"],
            env=plain_environment(HAKMEM_PID="1"),
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            check=True,
        )
        self.assertEqual(len(self.reports()), 1)

    def test_a_report_on_stderr(self):
        lines = self.hakmem("env", "--report", "-").stdout
        done = subprocess.run(
            ["sh", "-c", f"{lines}\n{sys.executable} -c 'print(1)'"],
            env=plain_environment(),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.stdout, "1\n")
        self.assertRegex(done.stderr, "process resident (?s:.*) live: ")


if __name__ == "__main__":
    unittest.main()
