"""--live: a program is looked at while it runs; it neither waits for who looks nor keeps its socket."""

import json
import os
import stat
import subprocess
import sys
import threading
import unittest

from support import ProgramCase, needs_objects, plain_environment

HAKMEM = os.environ.get("HAKMEM_COMMAND", "")
# Keeps more with each line that it reads, and says so.
SERVICE = """
import os, sys
kept = []
def cache(n):
    kept.append([bytearray(900) for _ in range(n)])
def request(n):
    kept.append(bytearray(n))
cache(6000)
print(os.getpid(), flush=True)
for line in sys.stdin:
    request(30_000_000)
    print("more", flush=True)
"""


@unittest.skipUnless(os.path.exists(HAKMEM), "the command hakmem was not built; HAKMEM_COMMAND may name it")
class Live(ProgramCase):
    def begin(self, text, *options, name="program.py"):
        """The program under hakmem, and the first line that it writes."""
        command = [sys.executable, "-m", "hakmem", "run", "--report", "", *options, self.script(text, name)]
        p = subprocess.Popen(
            command, env=plain_environment(), cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        return p, p.stdout.readline().strip()

    def ask(self, p, answer="more"):
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline().strip(), answer)

    def finish(self, p, text=""):
        out, err = p.communicate(timeout=60)
        self.assertEqual((out, err, p.returncode), (text, "", 0))

    def look(self, *arguments, status=0):
        done = subprocess.run([HAKMEM, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def place(self, process):
        return f"/tmp/hakmem-{os.geteuid()}/{process}"

    @needs_objects
    def test_lines_that_grow(self):
        p, number = self.begin(SERVICE, "--all", "--profile=64K", "--live")
        self.assertEqual(number, str(p.pid))
        text = self.look("attach", number)
        self.assertRegex(text, rf"^hakmem: process {number}, python: .*program.py\n")
        self.assertRegex(text, r"[56]\.\d\d MiB .* (cache.*|<listcomp>) \(.*program.py:5\)")
        self.assertNotIn("request", text)
        self.ask(p)
        self.assertRegex(self.look("top", number), r"\d\d\.\d\d MiB .* request \(.*program.py:7\)")
        self.look("attach", number, "-o", self.folder / "now.json")
        now = json.loads((self.folder / "now.json").read_text())
        self.assertEqual((now["process"]["pid"], now["process"]["runtime"]["name"]), (p.pid, "python"))
        self.finish(p)
        self.assertFalse(os.path.exists(self.place(number)))

    def test_without_it_nobody_can_look(self):
        p, number = self.begin(SERVICE, "--all", "--profile")
        self.assertIn("does not listen", self.look("attach", number, status=1))
        self.assertFalse(os.path.exists(self.place(number)))
        self.finish(p)

    @needs_objects
    def test_without_a_profile_there_are_labels(self):
        p, number = self.begin(SERVICE, "--live", "--all")
        self.assertRegex(self.look("attach", number), r"(?m)^ +1?\d\.\d\d MiB .* (mem|obj) ")
        self.finish(p)

    def test_the_owner_alone(self):
        p, number = self.begin(SERVICE, "--live=./socket")
        self.assertEqual(stat.S_IMODE((self.folder / "socket").stat().st_mode), 0o600)
        self.assertIn(f"process {number}, python", self.look("top", self.folder / "socket"))
        self.assertFalse(os.path.exists(self.place(number)))
        self.finish(p)
        self.assertFalse((self.folder / "socket").exists())

    @needs_objects
    def test_threads_go_on(self):
        text = """
            import os, sys, threading
            over = False
            rounds = [0] * 4
            def work(i):
                kept = bytearray(3_000_000)
                while not over:
                    [bytes(j) for j in range(300)]
                    rounds[i] += 1
            threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
            for t in threads: t.start()
            while not all(rounds): pass
            print(os.getpid(), flush=True)
            for line in sys.stdin:
                before = list(rounds)
                while any(a == b for a, b in zip(before, rounds)): pass
                print("more", flush=True)
            over = True
        """
        p, number = self.begin(text, "--all", "--malloc", "--profile=16K", "--live", "--labels", "site")
        for _ in range(5):
            self.assertRegex(self.look("attach", number), r"1[12]\.\d\d MiB .* work \(")
            self.ask(p)
        self.finish(p)

    @needs_objects
    def test_children_have_their_own(self):
        text = """
            import os, subprocess, sys, warnings
            warnings.simplefilter("always")  # 3.12 and later warn of forks beside threads
            def child():
                kept = bytearray(20_000_000)
                print(os.getpid(), flush=True)
                sys.stdin.read(1)
                os._exit(0)
            try: subprocess.run(["/nowhere/program"])
            except FileNotFoundError: pass
            pid = os.fork()
            if pid == 0: child()
            os.waitpid(pid, 0)
            print("done", flush=True)
            sys.stdin.read(1)
        """
        p, child = self.begin(text, "--all", "--profile=64K", "--live")
        self.assertNotEqual(child, str(p.pid))
        self.assertRegex(self.look("attach", child), rf"process {child}, [^$]*child \(")
        self.assertNotIn("child (", self.look("attach", p.pid))
        self.ask(p, "done")
        self.assertFalse(os.path.exists(self.place(child)))
        self.assertIn(f"process {p.pid}", self.look("attach", p.pid))
        self.finish(p)

    def test_forks_beside_the_thread_of_the_socket_warn_of_nothing(self):
        """By the launcher, and by the program itself. It is answered between forks, and from a fork on."""
        text = """
            import logging, multiprocessing, os, sys, threading, warnings
            warnings.simplefilter("always")
            ASK
            def threads(): return len(os.listdir("/proc/self/task"))
            def fork():
                pid = os.fork()
                if pid == 0: os._exit(0)
                os.waitpid(pid, 0)
            for i in range(20): fork()
            with multiprocessing.get_context("fork").Pool(1) as pool: pool.map(abs, [1])
            print(os.getpid(), flush=True)
            sys.stdin.read(1)
            pid = os.fork()
            if pid == 0:
                sys.stdin.read()
                os._exit(0)
            print("forked", flush=True)
            assert threads() == 2
            os.waitpid(pid, 0)
        """
        for options, ask in (["--live"], ""), ([], "import hakmem; hakmem.live()"):
            with self.subTest(ask):
                p, number = self.begin(text.replace("ASK", ask), *options)
                self.assertEqual(number, str(p.pid), p.stderr.read() if not number else "")
                self.assertIn(f"process {number}", self.look("attach", number))
                self.ask(p, "forked")
                self.assertIn(f"process {number}", self.look("attach", number))
                self.finish(p)
                self.assertFalse(os.path.exists(self.place(number)))

    def test_a_path_is_that_of_the_first_process(self):
        text = """
            import os, subprocess, sys, warnings
            warnings.simplefilter("always")
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
            print(os.getpid(), flush=True)
            sys.stdin.read()
        """
        p, number = self.begin(text, "--live=./here")
        self.assertIn(f"process {number}", self.look("top", self.folder / "here"))
        self.finish(p)

    def test_the_end_while_somebody_looks(self):
        for end in ("pass", "import os; os._exit(0)"):
            with self.subTest(end):
                p, number = self.begin(SERVICE + end, "--all", "--profile=1K", "--live")
                looked, over = threading.Semaphore(0), threading.Event()

                def viewer():
                    while not over.is_set():
                        subprocess.run([HAKMEM, "attach", number], capture_output=True, timeout=60)
                        looked.release()

                viewers = [threading.Thread(target=viewer) for _ in range(2)]
                for v in viewers:
                    v.start()
                for _ in range(4):
                    looked.acquire()
                self.finish(p)
                over.set()
                for v in viewers:
                    v.join()
                self.assertFalse(os.path.exists(self.place(number)))

    @needs_objects
    def test_a_program_that_asks_itself(self):
        text = """
            import hakmem, os, sys
            hakmem.install("all")
            hakmem.profile.start(mean="64K")
            hakmem.live()
            def late(): return bytearray(10_000_000)
            kept = late()
            try: hakmem.live()
            except RuntimeError as e: print(e, file=sys.stderr)
            print(os.getpid(), flush=True)
            sys.stdin.read(1)
            print(hakmem.profile.running())
        """
        script = self.script(text)
        p = subprocess.Popen([sys.executable, script], env=plain_environment(), cwd=self.folder, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        number = p.stdout.readline().strip()
        self.assertRegex(self.look("attach", number), r"late \(.*program.py")
        out, err = p.communicate(timeout=60)
        self.assertEqual((out, err, p.returncode), ("True\n", "there is a socket already\n", 0))

    def test_main_leaves_by_pthread_exit(self):
        """The process ends with the program's last thread, not with that of the socket."""
        text = """
            import ctypes, threading, time
            def work():
                time.sleep(0.3)
                print("worked", flush=True)
            threading.Thread(target=work).start()
            ctypes.CDLL(None).pthread_exit(None)
        """
        done = self.run_script(text, "--live")
        self.assertEqual((done.stdout, done.stderr), ("worked\n", ""))

    def test_a_socket_that_cannot_be(self):
        done = self.run_script("print(1)", "--live=/nowhere/socket")
        self.assertEqual(done.stdout, "1\n")
        self.assertEqual(done.stderr, "hakmem: HAKMEM_LIVE: no socket at /nowhere/socket: No such file or directory\n")
        done = self.run_script("print(1)", "--live=/" + "x" * 200)
        self.assertEqual(done.stdout, "1\n")
        self.assertRegex(done.stderr, r"^hakmem: HAKMEM_LIVE: no socket at /x+\.\.\.: the name is too long\n$")
        text = "import hakmem\ntry: hakmem.live('/nowhere/socket')\nexcept RuntimeError as e: print(e)"
        self.assertEqual(self.python("-c", text).stdout, "no socket at /nowhere/socket: No such file or directory\n")

    def test_a_word_is_no_socket(self):
        expected = "on, off or a path with a slash expected"
        for command in "run", "env":
            done = self.hakmem(command, "--live=yes", *(["program.py"] if command == "run" else []), check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"(?m)^.*--live: 'yes': {expected}$")
        text = "import hakmem\ntry: hakmem.live('yes')\nexcept ValueError as e: print(e)"
        self.assertEqual(self.python("-c", text).stdout, "live: 'yes': on or a path with a slash expected\n")
        done = self.run_script("import os; print(os.environ.get('HAKMEM_LIVE'))", "--live=off")
        self.assertEqual((done.stdout, done.stderr), ("None\n", ""))
        self.assertFalse((self.folder / "yes").exists())

    def test_env_says_the_same(self):
        shown = self.hakmem("env", "--live").stdout
        self.assertIn("export HAKMEM_LIVE=on\n", shown)
        self.assertIn("unset HAKMEM_LIVE\n", self.hakmem("env").stdout)


if __name__ == "__main__":
    unittest.main()
