"""python -m hakmem: programs keep their behaviour, reports come out."""

import fcntl
import json
import os
import re
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest
from pathlib import Path

import hakmem
from support import OBJ, ProgramCase, needs_objects, plain_environment, preloaded


class Run(ProgramCase):
    def test_output_arguments_and_status_are_the_programs(self):
        text = """
            import sys
            print(sys.argv, __name__, len(sys.path) > 0)
            print("to stderr", file=sys.stderr)
            sys.exit(7)
        """
        alone = self.python(self.script(text), "-x", "--all", "a b", check=False)
        under = self.run_script(text, "--all", arguments=("-x", "--all", "a b"), check=False)
        self.assertEqual(under.stdout, alone.stdout)
        self.assertEqual(under.stderr, alone.stderr)
        self.assertEqual(under.returncode, 7)

    def test_a_module(self):
        (self.folder / "mod.py").write_text("import sys; print(sys.argv[1:], __spec__.name)")
        done = self.hakmem("run", "--report", "", "-m", "mod", "-m", "--limit")
        self.assertEqual(done.stdout, "['-m', '--limit'] mod\n")

    def test_interpreter_options_go_on(self):
        text = "import sys; print(sys.flags.optimize, sys.warnoptions)"
        done = self.python("-O", "-W", "error", "-m", "hakmem", "run", "--report", "", self.script(text))
        self.assertEqual(done.stdout, "1 ['error']\n")

    def faults(self, *options):
        """Page faults of a program that takes and gives back 30 MB at a time."""
        text = """
            import resource
            for i in range(8):
                b = bytearray(30 << 20)
                del b
            print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
        """
        return int(self.run_script(text, "--all", "--report", "", *options).stdout)

    def test_a_mode_and_a_policy_act(self):
        policy = self.folder / "policy"
        policy.write_text("hakmem-policy 1\nbig_cache none\nhuge_from none\n")
        minimal, fast = self.faults("--mode", "minimal"), self.faults("--mode=fast")
        self.assertGreater(minimal, 2 * fast)
        self.assertGreater(self.faults("--mode", "fast", "--policy", str(policy)), 2 * fast)

    def test_what_is_learned_is_written_and_acts_at_the_next_start(self):
        learned = self.folder / "learned"
        text = f"""
            import os, subprocess, sys, time
            if os.fork() == 0: sys.exit()
            os.wait()
            subprocess.run([sys.executable, "-c", "print(1)"])
            print(os.path.exists({str(learned)!r}))
            os.chdir("/")
            b = [bytearray(1 << 20) for i in range(100)]
            END
        """
        for how, end in (("--learn=learned", ""), ("--learn", ""), ("--learn=learned", "sys.stdout.flush(); os._exit(0)")):
            words = [how, *(["learned"] if how == "--learn" else [])]
            done = self.run_script(text.replace("END", end), "--all", "--report", "", *words)
            self.assertEqual(done.stdout, "1\nFalse\n")
            self.assertRegex(learned.read_text(), r"(?m)^hakmem-policy 1\nmode fast\nexpected_bytes 1[01]\dM\n\Z")
            learned.unlink()
        fast = self.faults("--mode=fast")
        learned.write_text("hakmem-policy 1\nbig_cache none\nhuge_from none\n")
        self.assertGreater(self.faults("--mode=fast", "--learn", str(learned)), 2 * fast)
        learned.write_text("hakmem-policy 1\nx\n")
        done = self.run_script("print(1)", "--report", "", "--learn", "learned", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hakmem: HAKMEM_LEARN: .*/learned:2: 'x' is unknown; Python is not started$")
        self.assertEqual(learned.read_text(), "hakmem-policy 1\nx\n")

    def test_what_memory_is_worth(self):
        learned = self.folder / "learned"
        for words, text in (
            (("--memory", "dear"), "price 1000\n"),
            (("--price=7",), "mode fast\nprice 7\n"),
            (("--memory=64M",), "mode fast\nbig_cache 32M\nretained_bytes 32M\nretained_percent none\nprice 5\nmemory 64M\n"),
            (("--mode=balanced",), ""),
        ):
            self.run_script("print(1)", "--report", "", f"--learn={learned}", *words)
            lines = [line for line in learned.read_text().splitlines(True) if not line.startswith(("#", "expected_bytes"))]
            self.assertEqual("".join(lines), "hakmem-policy 1\n" + text)
            learned.unlink()
        self.assertGreater(self.faults("--memory=dear"), 2 * self.faults("--memory=cheap"))
        for words in (("--memory=costly",), ("--memory=4K",), ("--price=0",), ("--price=x",), ("--price=1000001",)):
            done = self.run_script("print(1)", *words, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("expected", done.stderr)

    def test_a_policy_that_is_none_is_told_with_its_line(self):
        (self.folder / "p").write_text("hakmem-policy 1\nmagazines 3\n")
        done = self.run_script("print(1)", "--report", "", "--policy", "p", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hakmem: HAKMEM_POLICY: .*/p:2: 'magazines' is unknown; Python is not started$")
        done = self.hakmem("run", "--mode", "quick", "-c", "print(1)", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("invalid choice: 'quick'", done.stderr)

    def test_an_uncaught_exception(self):
        text = "def f(): raise ValueError('no')\nf()"
        alone = self.python(self.script(text), check=False)
        under = self.run_script(text, check=False)
        self.assertEqual((under.returncode, under.stderr), (alone.returncode, alone.stderr))

    def test_a_keyboard_interrupt(self):
        text = "import os, signal, time; signal.signal(2, signal.default_int_handler); os.kill(os.getpid(), 2); time.sleep(9)"
        done = self.run_script(text, "--report", "r.json", check=False)
        self.assertEqual(done.returncode, -signal.SIGINT)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertEqual(len(self.reports()), 1)
        done = self.run_script(text, "--report", "-", check=False)
        self.assertEqual(done.returncode, -signal.SIGINT)
        self.assertRegex(done.stderr, "(?s)KeyboardInterrupt.*resident .* live: ")

    def test_a_folder_that_cannot_be_preloaded(self):
        folder = self.folder / "with space"
        shutil.copytree(Path(hakmem.__file__).parent, folder / "hakmem")
        for command in (["run", "x.py"], ["env"], ["check"]):
            done = self.hakmem(*command, env=plain_environment(PYTHONPATH=str(folder)), check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^hakmem: .*/with space/.* LD_PRELOAD .*\n$")

    def test_what_is_preloaded_already_stays(self):
        text = "import os; print(os.environ['LD_PRELOAD'].split(':')[1:])"
        done = self.run_script(text, env=plain_environment(LD_PRELOAD="libc.so.6"))
        self.assertEqual(done.stdout, "['libc.so.6']\n")

    def test_pythonmalloc_is_removed_with_a_word(self):
        text = "import hakmem, os, sys; print(hakmem.status()['obj'], os.environ.get('PYTHONMALLOC'), sys.flags.dev_mode)"
        for name in ("PYTHONMALLOC", "PYTHONDEVMODE"):
            with self.subTest(name):
                value = {"PYTHONMALLOC": "debug", "PYTHONDEVMODE": "1"}[name]
                done = self.run_script(text, "--all", env=plain_environment(**{name: value}))
                self.assertEqual(done.stdout, f"{OBJ} None False\n")
                self.assertIn(name, done.stderr)
        done = self.python("-X", "dev", "-m", "hakmem", "run", "--report", "", "--all", self.script(text))
        self.assertEqual(done.stdout, f"{OBJ} None False\n")
        self.assertIn("-X dev", done.stderr)


class Report(ProgramCase):
    KEEP = "keep = [[0] * 125 for i in range(3000)]\n"
    MOVES = "import os; os.makedirs('below', exist_ok=True); os.chdir('below')"

    def test_file(self):
        self.run_script(self.KEEP, "--all", "--report", "r.json")
        (report,) = self.reports()
        labels, stats = report["labels"], report["stats"]
        self.assertEqual(sum(x["live_bytes"] for x in labels.values()), stats["live_bytes"])
        self.assertEqual(sum(x["live_blocks"] for x in labels.values()), stats["live_blocks"])
        self.assertGreater(
            labels["mem"]["live_bytes"], 3000 * 1000, "the report is made before Python clears up"
        )
        self.assertEqual(report["status"]["obj"], OBJ)
        self.assertIn("program.py", report["command"][-1])
        shown = self.hakmem("report", "r.json").stdout
        self.assertRegex(shown, r"(?m)^  mem +\d{7,} +\d+ +\d+\.\d %")
        self.assertRegex(shown, r"(?m)^  process resident +(\d+) .*:$")
        parts = re.findall(r"(?m)^    \S.*? +(\d+) +[\d.]+ MiB ", shown)
        self.assertEqual(sum(map(int, parts)), int(re.search(r"process resident +(\d+)", shown)[1]))
        self.assertEqual(len(parts), len(report["parts"]))
        self.assertNotIn("not ours", shown)

    def test_text_comes_after_the_programs_output(self):
        text = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)"
        done = self.hakmem("run", self.script(text), check=False)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout, "out\n")
        self.assertRegex(done.stderr, r"(?s)^err\nhakmem .*arena.*resident")

    @needs_objects
    def test_a_pipe_whose_reader_is_slow(self):
        """It has the report once and whole, however the process ends."""
        programs = {}
        for end in ("pass", "os._exit(0)", "os.kill(os.getpid(), 15)"):
            command = [sys.executable, "-c", f"import os; {end}"]
            out, into = os.pipe()
            fcntl.fcntl(into, 1031, 4096)  # F_SETPIPE_SZ: less than a report
            env = preloaded(all_domains=True, labels="site", report=f"/dev/fd/{into}")
            program = subprocess.Popen(command, env=env, pass_fds=[into], stderr=subprocess.PIPE)
            os.close(into)
            programs[end] = program, out
        time.sleep(3)
        for end, (program, out) in programs.items():
            with self.subTest(end):
                with open(out) as pipe:
                    report = json.load(pipe)
                self.assertEqual(program.communicate(timeout=60)[1], b"")
                self.assertEqual(report["process"]["pid"], program.pid)

    def test_a_program_that_changes_its_folder(self):
        self.run_script(self.MOVES, "--report", "r.json")
        self.assertEqual(len(self.reports()), 1)

    def test_the_package_by_a_relative_path(self):
        (self.folder / "packages").symlink_to(Path(hakmem.__file__).parents[1])
        relative = plain_environment(PYTHONPATH="none:packages")
        for text in ("", self.MOVES):
            done = self.hakmem("run", self.script(text), env=relative)
            self.assertRegex(done.stderr, "process resident (?s:.*) live: ", text)
        seen = self.run_script("import os; print(os.environ['PYTHONPATH'])", env=relative).stdout
        self.assertEqual(seen, "none:packages\n", "as it was")

    def test_difference(self):
        self.run_script("", "--all", "--report", "a.json")
        self.run_script(self.KEEP, "--all", "--report", "b.json")
        shown = self.hakmem("diff", "a.json", "b.json").stdout
        change = int(re.search(r"(?m)^  mem +\+([\d,]+)", shown)[1].replace(",", ""))
        self.assertGreater(change, 3_000_000)
        self.assertLess(change, 3_400_000)

    def test_not_a_report(self):
        (self.folder / "x.json").write_text('{"schema": 99}')
        done = self.hakmem("report", "x.json", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("x.json", done.stderr)

        def bounded():
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

        done = self.hakmem("report", "/dev/zero", check=False, preexec_fn=bounded)
        self.assertRegex(done.stderr, r"^hakmem: /dev/zero: not a report of hakmem [^\n]*\n$")
        self.assertEqual(done.returncode, 2)

    def test_output_that_cannot_be_written(self):
        self.run_script("", "--report", "r.json")
        for redirection, status, words in (
            (">/dev/full", 2, "hakmem: .*No space left.*\n"),
            (">&-", 2, "hakmem: standard output is closed\n"),
            ("2>&- >&-", 2, ""),
            (">/dev/full 2>&-", 2, ""),
            ("| true", 0, ""),
        ):
            with self.subTest(redirection):
                shell = f"sleep 0.2; {shlex.quote(sys.executable)} -m hakmem report r.json"
                done = subprocess.run(
                    ["sh", "-c", f"({shell}) {redirection}"],
                    cwd=self.folder,
                    env=plain_environment(),
                    capture_output=True,
                    text=True,
                )
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertRegex(done.stderr, f"^{words}$")
        shell = f"{shlex.quote(sys.executable)} -m hakmem report nothing 2>&-"
        done = subprocess.run(
            ["sh", "-c", shell], cwd=self.folder, env=plain_environment(), capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_names_that_the_terminal_cannot_show(self):
        self.run_script("print(2)", "--report", "r.json")
        path = self.folder / "r.json"
        whole = json.loads(path.read_text())
        whole["process"]["command"] = ["\xe9.py"]
        path.write_text(json.dumps(whole))
        done = self.hakmem("report", "r.json", env=plain_environment(PYTHONIOENCODING="ascii"))
        self.assertIn("\\xe9.py", done.stdout)

    @unittest.skipUnless(shutil.which("localedef"), "no localedef (Debian package: libc-bin)")
    def test_the_programs_locale_may_have_a_decimal_comma(self):
        (self.folder / "comma.src").write_text(
            'LC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'
        )
        # Those of Debian are in a package of their own.
        characters = "".join(f"<U{c:04X}> /x{c:02x} CHARACTER\n" for c in range(128))
        (self.folder / "ascii.map").write_text(
            "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\n"
            f"CHARMAP\n{characters}END CHARMAP\n"
        )
        # Of all other categories it says that they are not there, and fails.
        command = ["localedef", "-c", "-i", "comma.src", "-f", "./ascii.map", str(self.folder / "comma")]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertTrue((self.folder / "comma" / "LC_NUMERIC").exists(), done.stderr)
        text = """
            import hakmem, locale
            locale.setlocale(locale.LC_NUMERIC, "comma")
            print(locale.localeconv()["decimal_point"], hakmem.take_snapshot().parts["cpu_seconds"] > 0)
        """
        environment = plain_environment(LOCPATH=str(self.folder))
        self.assertEqual(self.run_script(text, "--report", "r.json", env=environment).stdout, ", True\n")
        self.assertEqual(len(self.reports()), 1)

    def test_a_name_that_is_too_long(self):
        done = self.run_script("print(5)", "--report", "x/" * 2500)
        self.assertEqual(done.stdout, "5\n")
        self.assertRegex(done.stderr, r"^hakmem: no report in .*: the name is too long\n$")

    def test_a_place_that_cannot_be_written(self):
        """It is said before the program begins, and after it."""
        text = "import sys; print('here', file=sys.stderr)"
        for place in ("/nowhere/r.json", "/nowhere/%p.json", "/proc/r.json"):
            done = self.run_script(text, "--report", place)
            self.assertRegex(
                done.stderr,
                r"^hakmem: no report can be written in /(nowhere|proc)/\w+.json: No such file or directory\n"
                r"here\nhakmem: no report in [^\n]*: No such file or directory\n$",
            )

    def test_a_file_that_grows_too_large_leaves_the_one_before(self):
        """As on a full disk. A report with lines is longer than what this one may write."""
        text = """
            import argparse, json, resource, sys
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            for n in range(int(sys.argv[1])): exec(f"def f{n}(): pass")
        """
        self.run_script(self.KEEP, "--report", "r.json")
        before = (self.folder / "r.json").read_bytes()
        done = self.run_script(text, "--all", "--labels", "site", "--report", "r.json", arguments=("1000",))
        self.assertRegex(done.stderr, r"^hakmem: no report in [^\n]*/r.json: File too large\n$")
        self.assertEqual((self.folder / "r.json").read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["program.py", "r.json"])

    def test_devices_pipes_and_links(self):
        done = self.run_script("print(5)", "--report", "/dev/full")
        self.assertIn("hakmem: no report in /dev/full: No space left on device\n", done.stderr)
        done = self.run_script("print(5)", "--report", "/dev/null")
        self.assertEqual((done.stderr, stat.S_ISCHR(os.stat("/dev/null").st_mode)), ("", True))
        done = self.run_script("print(5)", "--report", "/dev/stdout")
        self.assertEqual(json.loads(done.stdout.partition("\n")[2])["schema"], "hakmem-report/1")
        (self.folder / "link.json").symlink_to("r.json")
        self.run_script("print(5)", "--report", "link.json")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertEqual(len(self.reports("r.json")), 1)

    def test_os_exit_and_threads(self):
        text = (
            "import os, threading, time; threading.Thread(target=time.sleep, args=(9,)).start(); os._exit(4)"
        )
        done = self.run_script(text, "--report", "r.json", check=False)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(len(self.reports()), 1)

    def test_children_of_multiprocessing(self):
        text = """
            import multiprocessing as m, sys
            def f(n): return n * n
            if __name__ == "__main__":
                with m.get_context(sys.argv[1]).Pool(2) as pool:
                    print(sum(pool.map(f, range(10))))
                    pool.close()
                    pool.join()
        """
        for method, at_least in (("fork", 3), ("spawn", 3), ("forkserver", 3)):
            with self.subTest(method):
                done = self.run_script(text, "--all", "--report", f"{method}-%p.json", arguments=(method,))
                self.assertEqual(done.stdout, "285\n")
                reports = self.reports(f"{method}-*.json")
                self.assertGreaterEqual(len(reports), at_least)
                self.assertEqual({r["status"]["obj"] for r in reports}, {OBJ})
                self.assertEqual(len({r["pid"] for r in reports}), len(reports))

    def test_subprocesses(self):
        text = """
            import os, subprocess, sys
            subprocess.run([sys.executable, "-c", "import hakmem; print(hakmem.status()['obj'])"], check=True)
            subprocess.run(["/bin/echo", "no Python"], check=True)
            try:
                subprocess.run(["/does/not/exist"])
            except FileNotFoundError:
                print("not found", flush=True)
        """
        done = self.run_script(text, "--all", "--report", "r-%p.json")
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "no Python", "not found", OBJ])
        self.assertEqual(len(self.reports()), 2)
        self.run_script(text, "--all", "--report", "one.json")
        (one,) = self.reports("one.json")
        self.assertIn("program.py", one["command"][-1], "without %p it is that of the first process")

    def test_a_child_that_forks_reports_what_it_has(self):
        text = """
            import os
            pid = os.fork()
            more = [[0] * 125 for i in range(2000)] if pid == 0 else os.waitpid(pid, 0)
        """
        self.run_script(text, "--all", "--report", "r-%p.json")
        a, b = (r["labels"]["mem"]["live_bytes"] for r in self.reports())
        self.assertGreater(abs(a - b), 2_000_000)


class Environment(ProgramCase):
    def test_variables_for_a_shell(self):
        lines = self.hakmem("env", "--all", "--limit", "90M", "--report", "r-%p.json").stdout
        text = self.script("import hakmem; print(hakmem.status()['obj'], hakmem.stats()['hard_limit'])")
        done = subprocess.run(
            ["sh", "-c", f"{lines}\n{sys.executable} {text} && ls"],
            env=plain_environment(PYTHONMALLOC="default"),
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        self.assertEqual(done.stdout.splitlines()[0], f"{OBJ} {90 << 20}", done.stderr)
        self.assertEqual(len(self.reports()), 1)

    def test_programs_that_are_not_python(self):
        done = subprocess.run(
            ["/bin/ls", "/"],
            env=preloaded(report=str(self.folder / "r.json")),
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.reports(), [])

    def test_isolated_interpreters_too(self):
        for flags in (["-I"], ["-E"], ["-S"], ["-I", "-S", "-E"]):
            self.python(
                *flags, "-c", "pass", env=preloaded(all_domains=True, report=str(self.folder / "r.json"))
            )
            (report,) = self.reports()
            self.assertEqual(report["status"]["obj"], OBJ, flags)
            os.remove(self.folder / "r.json")

    def test_what_c_code_takes_past_the_limit_is_told(self):
        """A module that has its memory from malloc, or has given it back at the end."""
        text = """
            import ctypes, sys
            c = ctypes.CDLL(None)
            c.malloc.restype = ctypes.c_void_p
            if sys.argv[1:] != ["none"]:
                kept = ctypes.c_void_p(c.malloc(100 << 20))
                c.memset(kept, 1, 100 << 20)
                if "gone" in sys.argv: c.free(kept)
        """
        for how, least, most in ("malloc", 100, 110), ("gone", 80, 100):
            done = self.run_script(text, "--limit=20M", arguments=[how])
            told = re.fullmatch(r"hakmem: C code took (at least )?([\d.]+) MiB past the limit of 20.0 MiB, which (.*)\n", done.stderr)
            self.assertTrue(told, done.stderr)
            self.assertEqual((bool(told[1]), told[3]), (how == "gone", "does not count malloc (--malloc does)"))
            self.assertTrue(least <= float(told[2]) <= most, told[2])
        for options, how in (["--limit=20M"], "none"), (["--limit=200M", "--malloc"], "malloc"), ([], "malloc"):
            self.assertEqual(self.run_script(text, *options, arguments=[how]).stderr, "")

    def test_what_c_code_maps_is_under_the_limit(self):
        text = """
            import mmap
            def touch(size):
                kept = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
                for at in range(0, size, 4096): kept[at] = 1
                return kept
            first = touch(8 << 20)
            wide = [mmap.mmap(-1, 24 << 20, flags=mmap.MAP_PRIVATE) for _ in range(8)]  # untouched, which is no harm
            try:
                touch(60 << 20)
                print("granted")
            except OSError as error:
                print(error.errno)
            first.close()
            kept = touch(20 << 20)
            try:
                x = bytearray(30 << 20)
                print("granted")
            except MemoryError:
                print("MemoryError")
            kept.close()
            print(len(bytearray(20 << 20)))
        """
        for options in ["--all"], ["--malloc", "--all"]:
            done = self.run_script(text, "--limit=48M", *options)
            self.assertEqual(done.stdout.split(), ["12", "MemoryError", str(20 << 20)], done.stderr)
            self.assertRegex(done.stderr, r"^hakmem: the limit refused 60.0 MiB that [^\n]+ wanted to map itself, past malloc\n$")

    def test_memory_that_children_would_share_is_under_the_limit_and_in_one_part(self):
        text = """
            import hakmem, mmap
            try:
                mmap.mmap(-1, 60 << 20)
                print("granted")
            except OSError as error:
                print(error.errno)
            kept = mmap.mmap(-1, 20 << 20)
            for at in range(0, 20 << 20, 4096): kept[at] = 1
            memory = hakmem.take_snapshot().report["memory"]
            total = sum(part["bytes"] for part in memory["parts"])
            print(abs(total - memory["resident_bytes"]) < memory["resident_bytes"] // 50)
            print(sum(p["bytes"] for p in memory["parts"] if p["kind"] == "shared") >> 20)
            print(sum(p["bytes"] for p in memory["parts"] if p["kind"] == "mapped") < 15 << 20)
        """
        done = self.run_script(text, "--limit=48M", "--all")
        self.assertEqual(done.stdout.split(), ["12", "True", "20", "True"], done.stderr)

    def test_what_c_code_maps_has_its_line(self):
        text = """
            import mmap
            def maps():
                kept = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE)
                for at in range(0, 16 << 20, 4096): kept[at] = 1
                return kept
            kept = maps()
        """
        self.run_script(text, "--all", "--profile", "--report", "r.json")
        report = json.loads((self.folder / "r.json").read_text())
        _, mapped = report["contexts"]
        self.assertEqual(mapped["name"], "mapped")
        most = max(mapped["stacks"], key=lambda stack: stack["live_bytes"])
        self.assertEqual(most["live_bytes"], 16 << 20)
        frames = [mapped["frames"][n] for n in most["frames"]]
        lines = [(frame["function"], frame["line"]) for frame in frames if frame.get("line")]
        if sys.version_info >= (3, 15):
            # There the module mmap lets go of the GIL meanwhile, and nobody may look at Python's frames.
            self.assertTrue(any(frame.get("module", "").startswith("mmap.") for frame in frames), frames)
        else:
            self.assertEqual(lines[:2], [("maps", 4), ("<module>", 7)])
        self.assertTrue(any(p["name"].startswith("mapped by ") and p["bytes"] >= 16 << 20 for p in report["memory"]["parts"]))

    def test_what_c_code_maps_is_not_malloc(self):
        # glibc's arenas are 64 MiB at a multiple of 64 MiB too. Something else on both sides, so that the kernel
        # makes no longer mapping of it.
        text = """
            import ctypes, mmap
            def maps(size, **how): return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, **how)
            others = []
            for attempt in range(20):
                others.append(maps(2 << 20, prot=mmap.PROT_READ))
                kept = maps(64 << 20)
                others.append(kept)
                beyond = ctypes.addressof(ctypes.c_char.from_buffer(kept)) % (64 << 20)
                if beyond == 0: break
                # The kernel goes down with addresses: the next one is aligned if this lies between, and the one above.
                if beyond > 2 << 20: others.append(maps(beyond - (2 << 20), prot=mmap.PROT_READ))
            others.append(maps(2 << 20, prot=mmap.PROT_READ))
            print(beyond)
            for at in range(0, 16 << 20, 4096): kept[at] = 1
        """
        done = self.run_script(text, "--all", "--profile", "--report", "r.json")
        self.assertEqual(done.stdout, "0\n", "no mapping lies as an arena does")
        parts = json.loads((self.folder / "r.json").read_text())["memory"]["parts"]
        self.assertLess(sum(p["bytes"] for p in parts if p["kind"] == "malloc"), 4 << 20)
        self.assertTrue(any(p["name"].startswith("mapped by ") and p["bytes"] >= 16 << 20 for p in parts), parts)

    def test_values_that_are_none(self):
        for name in ("HAKMEM_DOMAINS", "HAKMEM_LIMIT", "HAKMEM_LABELS"):
            done = self.python("-c", "print(1)", env=preloaded() | {name: "-5x"}, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{name}=-5x: ", done.stderr)
        for size in ("-5", " -5", "+5", "18446744073709551616", "16777216T"):
            done = self.python("-c", "print(1)", env=preloaded() | {"HAKMEM_LIMIT": size}, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^hakmem: HAKMEM_LIMIT={re.escape(size)}: is [^\n]*; Python is not started\n$")

    def test_limit(self):
        text = """
            import hakmem
            for i in range(5):
                try:
                    keep = []
                    while True:
                        keep.append([0] * 1250)
                except MemoryError:
                    n = len(keep)
                    del keep
            print(n > 3000, hakmem.stats()["failures"] >= 5)
        """
        done = self.run_script(text, "--all", "--limit", "80M")
        self.assertEqual(done.stdout, "True True\n")


class Check(ProgramCase):
    def test_in(self):
        done = self.hakmem("check", "--all")
        self.assertRegex(done.stdout, "(?s)raw: replaced.*mem: replaced.*obj: (replaced|wrapped)")
        done = self.hakmem("check", env=preloaded())
        self.assertIn("this process was started with", done.stdout)

    def test_start_up_files_that_print(self):
        (self.folder / "sitecustomize.py").write_text("print('noise')")
        path = os.pathsep.join([str(self.folder), str(Path(hakmem.__file__).parents[1])])
        done = self.hakmem("check", env=plain_environment(PYTHONPATH=path))
        self.assertIn("raw: replaced", done.stdout)

    def test_displaced(self):
        for variable in ({"PYTHONMALLOC": "default"}, {"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}):
            done = self.hakmem("check", env=preloaded(all_domains=True) | variable, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("obj: displaced", done.stdout)
            self.assertIn("PYTHONMALLOC", done.stdout)

    def test_the_hook_is_missing(self):
        environment = preloaded() | {"LD_PRELOAD": "/nowhere/libhakmem_pyhook.so"}
        done = self.hakmem("check", env=environment, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not in", done.stdout)


if __name__ == "__main__":
    unittest.main()
