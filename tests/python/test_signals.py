"""Signals: reports of processes that one ends, and requests to running programs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest
from unittest import mock

from hakmem import _remote
from support import ProgramCase, compiler, plain_environment, preloaded

# In C code, with the GIL held.
STUCK = "print('ready', flush=True); sum(range(10**12))"
WAITS = "import time; print('ready', flush=True); time.sleep(60)"


class SignalCase(ProgramCase):
    def start(self, text, **options):
        return self.start_with(preloaded(all_domains=True, **options), self.script(text))

    def start_with(self, env, *command):
        """A program that runs, and has said so."""
        program = subprocess.Popen(
            [sys.executable, *command],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def report_path(self, name="r-%p.json"):
        return str(self.folder / name)

    def leftovers(self):
        return [p.name for p in self.folder.iterdir() if ".part" in p.name]


class Endings(SignalCase):
    def test_a_report_and_the_status_of_the_signal(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            for text in (WAITS, STUCK):
                program = self.start(text, report=self.report_path())
                program.send_signal(number)
                self.assertEqual(program.wait(20), -number)
                (report,) = self.reports(f"r-{program.pid}.json")
                self.assertEqual(report["pid"], program.pid)
                self.assertEqual(report["parent"], os.getpid())
                self.assertIn("program.py", report["command"][-1])
                stats = report["stats"]
                self.assertEqual(sum(x["live_bytes"] for x in report["labels"].values()), stats["live_bytes"])
                self.assertGreater(stats["resident_bytes"], stats["resident_ours_bytes"])
                self.assertGreater(stats["resident_ours_bytes"], stats["live_bytes"] // 2)
        self.assertEqual(self.leftovers(), [])

    def test_text_on_stderr(self):
        text = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
        done = self.run_script(text, "--report", "-", check=False)
        self.assertEqual(done.returncode, -signal.SIGTERM)
        self.assertRegex(done.stderr, r"(?s)^hakmem .*\n  process resident .* live: ")

    def test_lines_too(self):
        text = "keep = [str(i) * 9 for i in range(9000)]\n" + WAITS
        program = self.start(text, labels="site", report=self.report_path())
        program.terminate()
        self.assertEqual(program.wait(20), -signal.SIGTERM)
        (report,) = self.reports()
        self.assertEqual(sum(s["live_bytes"] for s in report["sites"]), report["stats"]["live_bytes"])
        amounts = [s["live_bytes"] for s in report["sites"]]
        self.assertEqual(amounts, sorted(amounts, reverse=True))

    def test_without_a_report_nothing_is_caught(self):
        program = self.start(WAITS)
        with open(f"/proc/{program.pid}/status") as file:
            caught = int(re.search("SigCgt:\\s*([0-9a-f]+)", file.read())[1], 16)
        self.assertFalse(caught >> (signal.SIGTERM - 1) & 1)
        program.terminate()
        self.assertEqual(program.wait(20), -signal.SIGTERM)

    def test_the_program_sees_the_default_and_has_its_way(self):
        """As uvicorn does: its own handler for a while, then the one before, and the signal again."""
        text = """
            import json, os, signal
            seen = [signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]
            before = signal.signal(signal.SIGTERM, lambda *_: seen.append("mine"))
            os.kill(os.getpid(), signal.SIGTERM)
            seen += [before is signal.SIG_DFL, os.path.exists(REPORT)]
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.kill(os.getpid(), signal.SIGTERM)
            seen.append(signal.signal(signal.SIGTERM, before) is signal.SIG_IGN)
            print(json.dumps(seen), flush=True)
            signal.raise_signal(signal.SIGTERM)
        """.replace("REPORT", repr(self.report_path("r.json")))
        done = self.python(self.script(text), env=preloaded(report=self.report_path("r.json")), check=False)
        self.assertEqual(done.returncode, -signal.SIGTERM)
        self.assertEqual(json.loads(done.stdout), [True, "mine", True, False, True])
        self.assertEqual(len(self.reports()), 1)

    def test_c_code_sees_the_default(self):
        text = """
            import ctypes, json
            libc = ctypes.CDLL(None)
            libc.signal.restype = ctypes.c_void_p
            libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
            action = ctypes.create_string_buffer(b"x" * 512, 512)
            before = libc.sigaction(15, None, action), action.raw[:8] == bytes(8)
            mine = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda n: None)
            address = ctypes.cast(mine, ctypes.c_void_p).value
            print(json.dumps([before, libc.signal(15, address), libc.signal(15, None) == address,
                              libc.sigaction(999, None, action), libc.sigaction(9, action, None)]))
        """
        found = self.run_code(text, env=preloaded(report=self.report_path()))
        self.assertEqual(found, [[0, True], None, True, -1, -1])

    def test_of_siginterrupt(self):
        """signal() heeds it, of a signal that the hook watches as well."""
        text = """
            import ctypes, errno, json, signal
            libc = ctypes.CDLL(None, use_errno=True)
            libc.signal.restype = ctypes.c_void_p
            libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
            class Action(ctypes.Structure):
                _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_char * 128), ("flags", ctypes.c_int),
                            ("restorer", ctypes.c_void_p)]
            mine = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda n: None)
            restarts, action = [], Action()
            for number in (signal.SIGALRM, signal.SIGTERM):
                for interrupts in (0, 1, 0):
                    libc.siginterrupt(number, interrupts)
                    libc.signal(number, ctypes.cast(mine, ctypes.c_void_p))
                    libc.sigaction(number, None, ctypes.byref(action))
                    restarts.append(bool(action.flags & 0x10000000))
            wrong = [(libc.signal(n, ctypes.c_void_p(-1)), ctypes.get_errno()) for n in (10, 15)]
            failed = ctypes.c_void_p(-1).value
            print(json.dumps([restarts, wrong == [(failed, errno.EINVAL)] * 2]))
        """
        found = self.run_code(text, env=preloaded(report=self.report_path()))
        self.assertEqual(found, [[True, False, True] * 2, True])

    def test_ignored_from_the_start(self):
        shell = f"trap '' TERM; {sys.executable} -c 'import os; os.kill(os.getpid(), 15); print(1)'"
        done = subprocess.run(
            ["sh", "-c", shell], env=preloaded(report=self.report_path()), capture_output=True, text=True
        )
        self.assertEqual((done.stdout, done.returncode), ("1\n", 0))

    def test_a_child_before_it_executes_another_program(self):
        """Children of subprocess share the parent's memory for a moment, and put dispositions back."""
        text = """
            import signal, subprocess, sys
            for i in range(20):
                child = subprocess.Popen(["sleep", "60"])
                child.terminate()
                assert child.wait() == -signal.SIGTERM
            child = subprocess.Popen(["grep", "SigCgt", "/proc/self/status"], stdout=subprocess.PIPE, text=True)
            assert int(child.communicate()[0].split()[1], 16) >> 14 & 1 == 0
            print("ready", flush=True)
            while True: signal.pause()
        """
        program = self.start(text, report=self.report_path("r.json"))
        self.hakmem("report", str(program.pid))
        program.terminate()
        self.assertEqual(program.wait(20), -signal.SIGTERM)
        self.assertEqual(len(self.reports()), 1)

    def test_at_any_moment(self):
        """Locks of the heap, of malloc and of stdio are held when the signal comes, by this thread and by others."""
        text = """
            import ctypes, os, sys, threading
            api = ctypes.CDLL(None)
            for f in api.PyMem_RawMalloc, api.malloc:
                f.restype, f.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
            api.PyMem_RawFree.argtypes = api.free.argtypes = [ctypes.c_void_p]
            def hammer():
                while True:
                    blocks = [api.PyMem_RawMalloc(n * 5000) for n in range(1, 40)]
                    others = [api.malloc(n * 5000) for n in range(1, 40)]
                    for b in blocks: api.PyMem_RawFree(b)
                    for b in others: api.free(b)
                    keep = [[0] * 100_000, {i: str(i) for i in range(3000)}]
            for i in range(2): threading.Thread(target=hammer, daemon=True).start()
            print("ready", flush=True)
            hammer()
        """
        for i in range(12):
            program = self.start(text, labels="native", report=self.report_path())
            time.sleep(0.03 * (i % 4))
            program.terminate()
            self.assertEqual(program.wait(40), -signal.SIGTERM)
            self.assertEqual(len(self.reports(f"r-{program.pid}.json")), 1, i)
        self.assertEqual(self.leftovers(), [])


    def test_handlers_that_end_the_process(self):
        """By _exit, in the middle of allocations: a report that cannot be had is not waited for without an end."""
        text = """
            import ctypes, os, signal, warnings
            warnings.simplefilter("ignore")
            libc = ctypes.CDLL(None)
            libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
            libc.signal(signal.SIGALRM, ctypes.cast(libc._exit, ctypes.c_void_p))
            children, ends = [], []
            def end(): ends.append(os.waitstatus_to_exitcode(os.waitpid(children.pop(0), 0)[1]))
            for i in range(80):
                children.append(os.fork())
                if children[-1] == 0:
                    signal.setitimer(signal.ITIMER_REAL, 0.002 + i * 4e-5)
                    kept = [None] * 64
                    while True:
                        for j in range(64): kept[j] = bytearray(20_000 + j * 997)
                if len(children) == 8: end()
            while children: end()
            print(set(ends))
        """
        done = self.run_script(text, "--all", "--report", "r-%p.json")
        self.assertEqual(done.stdout, "{%d}\n" % signal.SIGALRM)
        without = done.stderr.count("hakmem: no report: the process ends in the middle of an allocation\n")
        self.assertEqual(len(self.reports()), 81 - without)
        self.assertLess(without, 40)
        self.assertEqual(self.leftovers(), [])


class Churn(SignalCase):
    """Other threads allocate without the GIL, so that the heap hardly ever is without a lock."""

    CHURN = """
        #include <stdlib.h>
        void churn(void)
        {
            void *kept[512] = {0};
            for (unsigned x = 1;; x = x * 1103515245 + 12345) {
                unsigned i = x >> 16 & 511;
                free(kept[i]);
                kept[i] = malloc(16 + (x >> 12) % 200000);
            }
        }
    """

    THREADS = """
        import ctypes, os, threading, time
        churn = ctypes.CDLL("./churn.so").churn
        for i in range(2): threading.Thread(target=churn, daemon=True).start()
        time.sleep(0.2)
        print("ready", flush=True)
    """

    def setUp(self):
        super().setUp()
        if not compiler():
            self.skipTest("no C compiler (Debian package: build-essential)")
        source = self.script(self.CHURN, "churn.c")
        subprocess.run([compiler(), "-O1", "-shared", "-fPIC", "-o", self.folder / "churn.so", source], check=True)

    def test_the_end(self):
        for end, status in (("os._exit(3)", 3), ("os.kill(os.getpid(), 15); time.sleep(60)", -15)):
            for i in range(3):
                with self.subTest(end):
                    program = self.script(textwrap.dedent(self.THREADS) + end)
                    env = preloaded(all_domains=True, malloc=True, report=str(self.folder / f"{status}-{i}.json"))
                    done = self.python(program, env=env, check=False)
                    self.assertEqual((done.returncode, done.stderr), (status, ""))
        self.assertEqual(len(self.reports()), 6)
        self.assertEqual(self.leftovers(), [])

    def test_the_end_of_who_learns(self):
        """Each copy that is to write the learned file is cut off as long as it meets a lock."""
        program = self.script(textwrap.dedent(self.THREADS) + "os._exit(3)")
        for i in range(3):
            learned = self.folder / f"learned-{i}"
            env = preloaded(all_domains=True, malloc=True, learn=str(learned))
            done = self.python(program, env=env, check=False, timeout=60)
            self.assertEqual(done.returncode, 3)
            if learned.exists():
                self.assertEqual(done.stderr, "")
            else:
                self.assertRegex(done.stderr, f"{learned} is not written: the process ends in the middle")
        self.assertEqual(self.leftovers(), [])

    def test_a_request(self):
        """Copies that a handler makes meet a lock nearly always; then the main thread, which sleeps, writes the report."""
        program = self.start(textwrap.dedent(self.THREADS) + "time.sleep(60)", malloc=True)
        files, ask = [], _remote.ask

        def asks(pid, wish, attempt, name):
            files.append(f"/tmp/hakmem-{name:010x}.json")
            ask(pid, wish, attempt, name)

        with mock.patch.object(_remote, "ask", asks):
            for _ in range(3):
                self.assertEqual(_remote.report(program.pid)["process"]["pid"], program.pid)
        self.assertIsNone(program.poll())
        self.assertEqual([file for file in files if os.path.lexists(file)], [])


class Pools(SignalCase):
    def test_all_processes_of_a_pool_that_is_terminated_have_one(self):
        text = """
            import multiprocessing as m, os, sys
            def f(n): return os.getpid(), [[0] * 100 for i in range(500)] and n
            if __name__ == "__main__":
                with m.get_context("fork").Pool(60) as pool:
                    pids = {pid for pid, n in pool.map(f, range(3000), chunksize=5)}
                    workers = [p.pid for p in pool._pool]
                pool.join()
                print(len(workers), *workers, os.getpid())
        """
        done = self.run_script(text, "--all", "--report", "r-%p.json", timeout=200)
        count, *pids = map(int, done.stdout.split())
        self.assertEqual(count, 60)
        self.assertEqual({r["pid"] for r in self.reports()}, set(pids))
        self.assertEqual(len(list(self.folder.glob("*.json"))), 61)
        self.assertEqual(self.leftovers(), [])


class Requests(SignalCase):
    def test_trim(self):
        text = "keep = [dict(a=str(i)) for i in range(200_000)]; keep = keep[::1000]\n" + WAITS
        program = self.start(text)
        done = self.hakmem("trim", str(program.pid))
        before, after = map(float, re.findall(r"([\d.]+) MiB", done.stdout))
        self.assertGreater(before - after, 5)
        self.assertIsNone(program.poll(), "the program goes on")

    def test_a_report_of_a_running_program(self):
        """Also of one that does not come to run Python code; it goes on, and may be asked again."""
        for text in (WAITS, STUCK):
            program = self.start(
                "keep = [[0] * 125 for i in range(3000)]\n" + text, report=self.report_path()
            )
            shown = self.hakmem("report", str(program.pid)).stdout
            self.assertRegex(shown, rf"(?s)process {program.pid}, .*\n  mem +\d{{7,}} .*resident .* live: ")
            report = json.loads(self.hakmem("report", "--json", str(program.pid)).stdout)
            self.assertEqual(report["process"]["pid"], program.pid)
            (self.folder / "a.json").write_text(json.dumps(report))
            self.assertIn("resident: ", self.hakmem("diff", "a.json", str(program.pid)).stdout)
            self.assertIsNone(program.poll())
            self.assertEqual(self.reports("r-*.json"), [])
            program.kill()

    def test_what_another_puts_in_the_place_of_the_report(self):
        """Anybody may write into /tmp, and sees there what the program is about to name."""
        self.run_script("pass", "--report", "r.json")
        report = self.folder / "r.json"

        def foreign(path):
            shutil.copy(report, path)
            os.chown(path, 65534, 65534)

        ways = [os.mkfifo, lambda path: os.symlink(report, path), *([foreign] if os.geteuid() == 0 else [])]
        for way in ways:
            made = []

            def ask(pid, wish, attempt, name, way=way, made=made):
                made.append(f"/tmp/hakmem-{name:010x}.json")
                way(made[0])

            with mock.patch.object(_remote, "ask", ask), self.assertRaises(ValueError):
                _remote.report(os.getpid())
            self.assertEqual([os.path.lexists(path) for path in made], [False])
        with mock.patch.object(_remote, "ask", lambda pid, wish, attempt, name: shutil.copy(report, f"/tmp/hakmem-{name:010x}.json")):
            self.assertEqual(_remote.report(os.getpid())["process"]["runtime"]["name"], "python")

    def test_the_program_does_not_see_it(self):
        """No SIGCHLD, and no child that a wait finds."""
        text = """
            import json, os, signal, time
            seen = []
            signal.signal(signal.SIGCHLD, lambda *_: seen.append("child"))
            print("ready", flush=True)
            end = time.monotonic() + 60
            while not os.path.exists("go") and time.monotonic() < end:
                time.sleep(0.01)
                try:
                    seen.append(os.waitpid(-1, os.WNOHANG))
                except ChildProcessError:
                    pass
            print(json.dumps(seen))
        """
        program = self.start(text)
        for _ in range(5):
            self.hakmem("report", str(program.pid))
        (self.folder / "go").write_text("")
        self.assertEqual(program.communicate(timeout=20)[0], "[]\n")

    def test_while_it_allocates(self):
        text = """
            import threading
            def work():
                while True: keep = [[{i: bytes(9000)} for i in range(300)], [0] * 300_000]
            threading.Thread(target=work, daemon=True).start()
            print("ready", flush=True)
            work()
        """
        program = self.start(text)
        for _ in range(10):
            self.assertIn(" live ", self.hakmem("report", str(program.pid)).stdout)
        self.assertIsNone(program.poll())

    def refused(self, pid):
        for command in ("trim", "report"):
            done = self.hakmem(command, str(pid), check=False)
            self.assertEqual((done.returncode != 0, done.stdout), (True, ""))
            self.assertRegex(done.stderr, rf"^hakmem: {pid}: [^\n]*\n$")

    def test_programs_without_hakmem_are_left_alone(self):
        own = f"import signal; signal.signal({signal.SIGRTMIN + 8}, lambda *_: print('hit', flush=True))\n"
        for text in (WAITS, own + WAITS):
            program = self.start_with(plain_environment(), "-c", text)
            self.refused(program.pid)
            time.sleep(0.1)
            program.terminate()
            self.assertEqual(program.communicate()[0], "")
            self.assertEqual(program.returncode, -signal.SIGTERM)
        self.refused(2**22 + 5)
        self.refused(10**30)

    def test_a_program_that_uses_the_signal_itself(self):
        number = signal.SIGRTMIN + 8
        own = f"import signal; signal.signal({number}, lambda *_: print('hit', flush=True))\n"
        early = self.folder / "sitecustomize.py"
        for text, first in ((own + WAITS, ""), (WAITS, own)):
            early.write_text(first)
            env = preloaded(all_domains=True)
            program = self.start_with(
                {**env, "PYTHONPATH": f"{self.folder}:{env.get('PYTHONPATH', '')}"}, "-c", text
            )
            self.refused(program.pid)
            program.send_signal(number)
            self.assertEqual(program.stdout.readline(), "hit\n", "its handler is in place")
            program.kill()
        early.unlink()

    def test_a_program_that_executes_another(self):
        text = "import os, sys; print('ready', flush=True); os.execv('/bin/sleep', ['sleep', '60'])"
        program = self.start(text)
        for _ in range(200):
            with open(f"/proc/{program.pid}/comm") as file:
                if file.read() == "sleep\n":
                    break
            time.sleep(0.02)
        self.refused(program.pid)
        self.assertIsNone(program.poll())

    def test_children_are_asked_by_their_own_number(self):
        text = """
            import os, time
            pid = os.fork()
            if pid: print(pid, flush=True)
            time.sleep(60)
        """
        program = subprocess.Popen(
            [sys.executable, self.script(text)], env=preloaded(), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        child = int(program.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.assertIn(f"process {child}, ", self.hakmem("report", str(child)).stdout)


if __name__ == "__main__":
    unittest.main()
