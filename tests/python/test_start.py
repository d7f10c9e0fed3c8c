"""What `run` and its report add to a program: nothing that it must wait for, and figures that are its own."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from support import ProgramCase, empty_package, preloaded


class Start(ProgramCase):
    def imported(self, *command):
        """By the first of two interpreters."""
        done = self.python("-X", "importtime", *command)
        first = re.split(r"(?m)^import time: self.*\n", done.stderr)[1]
        return {line.rpartition("|")[2].strip() for line in first.splitlines() if line.count("|") == 2}

    def test_modules_that_are_imported_before_the_program(self):
        empty_package(self.folder)
        plain = self.imported("-m", "empty")
        self.assertIn("runpy", plain)
        for options in (["--report", ""], ["--all", "--limit=512M", "--labels", "site", "--report=r-%p.json"]):
            for program in ([self.script("pass")], ["-c", "pass"], ["-m", "this"]):
                with self.subTest(options=options, program=program):
                    more = self.imported("-m", "hakmem", "run", *options, *program) - plain
                    self.assertEqual(more, {"hakmem", "hakmem._launch", "hakmem._run"})


class Figures(ProgramCase):
    BURN = "import time\ndef burn(s):\n    while time.process_time() < s: pass\n"

    def test_what_the_process_was_before_the_program_is_not_in_them(self):
        """As of a launcher: it took 100 MB and half a second before it became the program."""
        before = self.script(
            self.BURN
            + "import os, sys\n"
            + "x = b'x' * (100 << 20)\n"
            + "burn(0.5)\n"
            + "os.execve(sys.executable, [sys.executable, sys.argv[1]], os.environ | eval(sys.argv[2]))",
            "before.py",
        )
        # The clock goes on from what was before.
        program = self.script(
            self.BURN + "import resource\nburn(time.process_time() + 0.2)\n"
            "u = resource.getrusage(resource.RUSAGE_SELF)\nprint(u.ru_maxrss >> 10, u.ru_utime + u.ru_stime)"
        )
        variables = {k: v for k, v in preloaded(report=str(self.folder / "r.json")).items()}
        done = self.python(before, program, repr(variables))
        peak, cpu = map(float, done.stdout.split())
        self.assertGreater(peak, 100)
        self.assertGreater(cpu, 0.69)
        (report,) = self.reports()
        self.assertLess(report["cpu_seconds"], cpu - 0.4)
        self.assertGreater(report["cpu_seconds"], 0.19)
        self.assertLess(report["peak_resident_bytes"], 50 << 20)
        self.assertGreater(report["peak_resident_bytes"], 5 << 20)

    def test_a_peak_that_is_over(self):
        text = "x = b'x' * (40 << 20)\ndel x"
        self.run_script(text, "--report", "r.json")
        (report,) = self.reports()
        self.assertGreater(report["peak_resident_bytes"], 40 << 20)
        self.assertLess(report["stats"]["resident_bytes"], 40 << 20)
        done = self.run_script(text, "--report", "-")
        self.assertGreater(float(re.search(r"peak resident ([\d.]+) MiB\n", done.stderr)[1]), 40)

    def test_a_child_has_its_own(self):
        text = self.BURN + "import os\nburn(0.4)\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: burn(0.1)"
        self.run_script(text, "--report", "r-%p.json")
        child, parent = sorted(r["cpu_seconds"] for r in self.reports())
        self.assertGreater(child, 0.09)
        self.assertLess(child, 0.39)
        self.assertGreater(parent, 0.3)

    def test_when_a_signal_ends_it(self):
        text = self.BURN + "import os, signal\nburn(0.2)\nos.kill(os.getpid(), signal.SIGTERM)"
        self.run_script(text, "--report", "r.json", check=False)
        (report,) = self.reports()
        self.assertGreater(report["cpu_seconds"], 0.1)
        self.assertGreater(report["peak_resident_bytes"], 5 << 20)


class Showing(ProgramCase):
    def test_no_other_python_is_needed(self):
        """Nor a module of this package."""
        env = {k: v for k, v in preloaded(all_domains=True, report="-").items() if k != "PYTHONPATH"}
        for flags in (["-S", "-I"], []):
            done = self.python(*flags, "-c", "pass", env=env | {"PATH": ""})
            self.assertRegex(done.stderr, r"(?s)^hakmem .*\n  process resident ")

    def test_nobody_reads_it(self):
        for end in ("sys.exit(3)", "os._exit(3)"):
            text = f"import os, signal, sys; signal.signal(signal.SIGPIPE, signal.SIG_DFL); {end}"
            program = subprocess.Popen(
                [sys.executable, self.script(text)], env=preloaded(report="-"), stderr=subprocess.PIPE
            )
            program.stderr.close()
            self.assertEqual(program.wait(60), 3)

    def test_nobody_reads_the_pipe_of_the_report(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        for stderr in (None, writer):  # where it is said
            for end in ("sys.exit(3)", "os._exit(3)"):
                text = f"import os, signal, sys; signal.signal(signal.SIGPIPE, signal.SIG_DFL); {end}"
                program = subprocess.run(
                    [sys.executable, self.script(text)],
                    env=preloaded(report=f"/dev/fd/{writer}"),
                    stderr=stderr or subprocess.PIPE,
                    pass_fds=(writer,),
                    timeout=60,
                )
                self.assertEqual(program.returncode, 3)
                if not stderr:
                    self.assertIn(b"Broken pipe", program.stderr)

    def test_stderr_that_the_program_closes_or_moves(self):
        """The report goes to what it was at the start, and not into a file that got its number."""
        for text in ("os.close(2)", "os.close(2); os.open('own', os.O_RDWR | os.O_CREAT)",
                     "os.closerange(3, 1024); [os.open('own', os.O_RDWR | os.O_CREAT) for i in range(250)]"):
            for end in ("", "; os._exit(0)", "; os.kill(os.getpid(), 15)"):
                with self.subTest(text + end):
                    done = self.python("-c", f"import os; {text}{end}", env=preloaded(report="-"), check=False)
                    self.assertEqual(done.stderr.count("  process resident "), 1, done.stderr)
        self.assertEqual((self.folder / "own").read_bytes(), b"")

    def test_stderr_that_is_closed_from_the_start(self):
        if subprocess.run(["sh", "-c", ":"], env=preloaded(), capture_output=True).returncode != 0:
            self.skipTest("the shell has another C library than the interpreter")
        text = "import os; fd = os.open('own', os.O_RDWR | os.O_CREAT | os.O_TRUNC); os.write(fd, b'%d' % fd); END"
        for report in ("-", "/nowhere/r.json"):
            for end in ("pass", "os._exit(0)", "os.kill(os.getpid(), 15)"):
                with self.subTest(report + end):
                    program = [sys.executable, self.script(text.replace("END", end))]
                    subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *program], env=preloaded(report=report),
                                   cwd=self.folder, timeout=60)
                    self.assertEqual((self.folder / "own").read_bytes(), b"2")

    def test_who_reads_is_slow_and_the_pipe_does_not_wait(self):
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        room = fcntl.fcntl(into, 1031, 4096)  # F_SETPIPE_SZ
        os.set_blocking(into, False)
        program = subprocess.Popen(
            [sys.executable, "-c", f"import os; os.write(2, b'.' * {room})"],
            env=preloaded(report="-"),
            stderr=into,
        )
        os.close(into)
        waiting = 0
        while waiting < room and program.poll() is None:
            waiting = struct.unpack("i", fcntl.ioctl(out, termios.FIONREAD, b"1234"))[0]
        time.sleep(0.2)  # for the report to come to the full pipe
        with open(os.dup(out)) as file:
            text = file.read()
        self.assertEqual(program.wait(60), 0)
        self.assertGreater(len(text), room)
        self.assertRegex(text, r"\n  process resident .*:\n(    \S[^\n]*\n)+$")

    def test_a_signal_after_the_program(self):
        """What was gathered at exit is shown all the same, once."""
        text = """
            import os, sys
            class Late:
                def __del__(self, kill=os.kill, pid=os.getpid()): kill(pid, 15)
            sys.late = Late()
        """
        done = self.python(self.script(text), env=preloaded(report="-"), check=False)
        self.assertEqual(done.returncode, -signal.SIGTERM)
        self.assertEqual(done.stderr.count("  process resident "), 1, done.stderr)

    def test_a_report_file_takes_the_mode_of_the_one_before(self):
        path = self.folder / "r.json"
        path.write_text("")
        path.chmod(0o600)
        self.run_script("", "--report", "r.json")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(path.read_text())["schema"], "hakmem-report/1")

    def test_standard_output_that_is_a_file(self):
        """The report comes behind what the program wrote."""
        with open(self.folder / "out", "w") as out:
            subprocess.run(
                [sys.executable, "-c", "print('first')"],
                env=preloaded(report="/dev/stdout"),
                stdout=out,
                check=True,
            )
        first, report = (self.folder / "out").read_text().split("\n", 1)
        self.assertEqual((first, json.loads(report)["schema"]), ("first", "hakmem-report/1"))

    def test_what_the_program_writes_later_does_not_go_over_the_report(self):
        """Python still holds what it printed, and an object writes when it dies."""
        text = (
            "import os\nclass Late:\n def __del__(self, write=os.write): write(1, b'\\nlast')\n"
            "late = Late()\nprint('first')"
        )
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for flags in (os.O_TRUNC, os.O_APPEND):
                (self.folder / "out").write_text("")
                out = os.open(self.folder / "out", os.O_WRONLY | flags)
                subprocess.run([sys.executable, "-c", text], env=preloaded(report=name), stdout=out, check=True)
                os.close(out)
                lines = (self.folder / "out").read_text().splitlines()
                self.assertEqual((lines[0], lines[-1]), ("first", "last"))
                self.assertEqual(json.loads("".join(lines[1:-1]))["schema"], "hakmem-report/1")


if __name__ == "__main__":
    unittest.main()
