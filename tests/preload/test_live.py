"""HAKMEM=live=,signal=: a program is looked at while it runs, by its owner, and nobody can hold it up."""

import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

from shim import HELPERS, PYTHON, SHIM, Case, main

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until, until_it_reads  # noqa: E402

COMMAND = os.environ["HAKMEM_COMMAND"]
STACKS = os.path.join(HELPERS, "preload_stacks")
# Allocates for ever, and says how far it is.
BUSY = "import sys\nkept = []\nfor i in range(1 << 30):\n    kept.append(bytearray(1000))\n    if i % 20000 == 0: kept.clear(); print(i, flush=True)"


class Live(Case):
    def run_program(self, settings, command=(STACKS, "wait"), ready="waiting\n"):
        p = subprocess.Popen(
            command, env=self.environment(settings), cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        if ready:
            self.assertEqual(p.stdout.readline(), ready)
        return p

    def finish(self, p):
        out, err = p.communicate(timeout=60)
        self.assertEqual((out, err, p.returncode), ("done\n", "", 0))

    def hakmem(self, *arguments, status=0):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def place(self, process, user=None):
        return f"/tmp/hakmem-{os.geteuid() if user is None else user}/{process}"

    def test_attach(self):
        p = self.run_program("rate=64K,profile=p.json,live=on")
        text = self.hakmem("attach", p.pid).stdout
        self.assertRegex(text, rf"^hakmem: process {p.pid}, c: .*preload_stacks wait\n")
        self.assertRegex(text, r"30\.\d\d MiB .* unlabelled +keep \(stacks.c\) < keep_large < waits")
        self.assertNotIn("keep_small", text)
        p.stdin.write("x")
        p.stdin.flush()
        until(lambda: "keep_small" in self.hakmem("attach", p.pid).stdout)
        self.hakmem("attach", p.pid, "-o", self.path("now.json"))
        with open(self.path("now.json")) as file:
            self.assertEqual(json.load(file)["process"]["pid"], p.pid)
        self.assertIn("keep_small", self.hakmem("folded", self.path("now.json")).stdout)
        self.assertFalse(os.path.exists(self.path("p.json")))
        self.finish(p)
        self.assertTrue(os.path.exists(self.path("p.json")))
        self.assertFalse(os.path.exists(self.place(p.pid)))
        self.assertIn("there is no process", self.hakmem("attach", p.pid, status=1).stderr)

    def test_without_a_profile_there_are_labels_and_sums(self):
        p = self.run_program("live=on,name=x")
        text = self.hakmem("attach", p.pid).stdout
        self.assertRegex(text, r"live 30\.\d\d MiB \(\+0 B since start\)")
        self.assertIn("unlabelled", text)
        self.finish(p)

    def test_owner_only(self):
        p = self.run_program("live=on")
        folder, sock = os.lstat(os.path.dirname(self.place(p.pid))), os.lstat(self.place(p.pid))
        self.assertEqual(stat.S_IMODE(folder.st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(sock.st_mode), 0o600)
        self.finish(p)

    def stranger(self, path):
        """What a process of another user gets from the socket."""
        program = (
            "import os, socket, sys\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "try: s.connect(sys.argv[1]); print(len(s.recv(100)))\n"
            "except PermissionError: print('refused')\n"
            "except ConnectionResetError: print(0)\n"
        )
        return subprocess.run([PYTHON, "-c", program, path], capture_output=True, text=True, timeout=60).stdout

    def test_another_user_gets_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("takes another user's identity, which only root may")
        os.chmod(self.dir, 0o755)
        path = self.path("socket")
        p = self.run_program(f"live={path}")
        self.assertEqual(self.stranger(path), "refused\n")
        os.chmod(path, 0o666)  # as a careless owner would
        self.assertEqual(self.stranger(path), "0\n")
        self.assertIn("unlabelled", self.hakmem("top", path).stdout)
        self.finish(p)

    def test_a_folder_of_somebody_else(self):
        if os.geteuid() != 0:
            self.skipTest("takes another user's identity, which only root may")
        folder = os.path.dirname(self.place(0, 65533))
        os.makedirs(folder, exist_ok=True)  # root's, not that user's
        os.chmod(self.dir, 0o755)  # that user may not come to the tree, perhaps
        self.addCleanup(os.rmdir, folder)
        program = "import os; os.setgroups([]); os.setgid(65533); os.setuid(65533); os.execv('/bin/echo', ['echo', 'on'])"
        done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=30,
                              env={"LD_PRELOAD": shutil.copy(SHIM, self.dir), "HAKMEM": "live=on"})
        self.assertEqual(done.stdout, "on\n")
        self.assertRegex(done.stderr, r"hakmem: HAKMEM: no socket at /tmp/hakmem-USER: Operation not permitted\n")

    def test_who_never_reads_holds_nobody_up(self):
        p = self.run_program("rate=1K,profile=p.json,live=on", [PYTHON, "-c", BUSY], "0\n")
        stuck = []
        for _ in range(3):
            s = socket.socket(socket.AF_UNIX)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            s.connect(self.place(p.pid))
            stuck.append(s)
        time.sleep(1)
        before = [p.stdout.readline() for _ in range(20)]  # it goes on
        self.assertEqual(len(set(before)), 20)
        for s in stuck:
            s.close()
        self.assertIn("python", self.hakmem("attach", p.pid).stdout)  # and who reads is served
        p.kill()

    def test_a_place_that_is_taken_or_stale(self):
        path = self.path("socket")
        first = self.run_program(f"live={path}")
        second = self.run_program(f"live={path}")
        _, told = second.communicate(timeout=60)
        self.assertRegex(told, rf"^hakmem: HAKMEM: no socket at {path}: Address already in use\n$")
        self.assertIn(f"process {first.pid},", self.hakmem("top", path).stdout)
        first.kill()
        first.wait()
        self.assertIn("nobody listens", self.hakmem("top", path, status=1).stderr)
        third = self.run_program(f"live={path}")
        self.assertIn(f"process {third.pid},", self.hakmem("top", path).stdout)
        self.finish(third)
        with open(path, "w") as file:
            file.write("a file")
        fourth = self.run_program(f"live={path}")
        self.assertIn("Address already in use", fourth.communicate(timeout=60)[1])
        with open(path) as file:
            self.assertEqual(file.read(), "a file")

    def dead(self, number):
        """A socket of a process of that number, which is gone."""
        place = self.place(number)
        s = socket.socket(socket.AF_UNIX)
        s.bind(place)
        s.close()
        self.addCleanup(lambda: os.path.exists(place) and os.unlink(place))
        return place

    def test_sockets_of_processes_that_are_gone_are_removed(self):
        first = self.run_program("live=on")
        # Above what a system gives out, so that they are nobody's.
        stale = [self.dead((1 << 22) + 7 + i) for i in range(3)]
        other = [self.place("mine"), self.place((1 << 22) + 50), self.place(f"0{(1 << 22) + 51}")]
        for path in other:
            self.addCleanup(os.unlink, path)
        for path in (other[0], other[2]):
            s = socket.socket(socket.AF_UNIX)
            s.bind(path)
            s.close()
        with open(other[1], "w"):
            pass  # no socket
        second = self.run_program("live=on")
        self.assertEqual([path for path in stale if os.path.exists(path)], [])
        self.assertEqual([path for path in other if not os.path.exists(path)], [])
        for p in (first, second):
            self.assertIn(f"process {p.pid},", self.hakmem("attach", p.pid).stdout)
            self.finish(p)

    def listen(self, number):
        """A socket as a process of that number has it."""
        place = self.place(number)
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind(place)
        self.addCleanup(os.unlink, place)
        s.listen(8)
        s.setblocking(False)
        return s

    def test_sockets_of_processes_that_are_there_are_left_in_peace(self):
        first = self.run_program("live=on")
        there = self.listen(os.getpid())
        idle = subprocess.Popen(["sleep", "60"])
        self.addCleanup(lambda: (idle.kill(), idle.wait()))
        silent = self.dead(idle.pid)
        elsewhere = self.listen((1 << 22) + 60)  # in a container that has the folder, too
        second = self.run_program("live=on")
        with self.assertRaises(BlockingIOError):
            there.accept()
        self.assertTrue(os.path.exists(silent))
        self.assertTrue(os.path.exists(elsewhere.getsockname()))
        for p in (first, second):
            self.finish(p)

    def test_a_folder_that_somebody_keeps_locked(self):
        first = self.run_program("live=on")
        folder = os.open(os.path.dirname(self.place(first.pid)), os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        stale = self.dead((1 << 22) + 8)
        second = self.run_program("live=on")
        self.assertTrue(os.path.exists(stale))
        self.assertIn(f"process {second.pid},", self.hakmem("attach", second.pid).stdout)
        os.close(folder)
        for p in (first, second):
            self.finish(p)

    def test_a_socket_that_cannot_be(self):
        done = self.start([STACKS, "known"], "live=/nowhere/socket")
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0))
        self.assertEqual(done.stderr, "hakmem: HAKMEM: no socket at /nowhere/socket: No such file or directory\n")

    def test_forked_children_listen_at_their_own(self):
        program = (
            "import os, sys\n"
            "def serve():\n"
            "    kept = [bytearray(300_000) for i in range(40)]\n"
            "    print('child', os.getpid(), flush=True); sys.stdin.read(1)\n"
            "child = os.fork()\n"
            "if child == 0: serve(); os._exit(0)\n"
            "os.waitpid(child, 0); print('done')"
        )
        p = self.run_program("rate=64K,profile=p%p.json,live=on,signal=USR1", [PYTHON, "-c", program], None)
        child = int(p.stdout.readline().split()[1])
        self.assertRegex(self.hakmem("attach", child).stdout, rf"^hakmem: process {child}, c: ")
        self.assertRegex(self.hakmem("attach", p.pid).stdout, rf"^hakmem: process {p.pid}, c: ")
        os.kill(child, signal.SIGUSR1)
        until(lambda: os.path.exists(self.path(f"p{child}.json.1")))
        self.assertFalse(os.path.exists(self.path(f"p{p.pid}.json.1")))
        self.finish(p)
        self.assertFalse(os.path.exists(self.place(p.pid)))

    def test_signal(self):
        p = self.run_program("rate=8K,profile=p.json,signal=USR2")
        for n in (1, 2):
            os.kill(p.pid, signal.SIGUSR2)
            until(lambda: os.path.exists(self.path(f"p.json.{n}")))
            p.stdin.write("x")
            p.stdin.flush()
            until_it_reads(p)
        self.finish(p)
        grown = self.hakmem("diff", self.path("p.json.1"), self.path("p.json.2")).stdout
        self.assertRegex(grown, r"\+(2\.[5-9]|3\.[0-4])\d MiB .* keep")
        self.assertTrue(os.path.exists(self.path("p.json")))

    def test_a_signal_is_one_report_while_somebody_looks(self):
        p = self.run_program("rate=8K,profile=p.json,signal=USR2,live=on")
        for n in range(1, 101):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.place(p.pid))
                os.kill(p.pid, signal.SIGUSR2)
                while s.recv(1 << 16):
                    pass
            until(lambda n=n: os.path.exists(self.path(f"p.json.{n}")))
            self.assertFalse(os.path.exists(self.path(f"p.json.{n + 1}")))
        with socket.socket(socket.AF_UNIX) as s:  # what the thread still does, it does before it answers
            s.connect(self.place(p.pid))
            while s.recv(1 << 16):
                pass
        self.assertFalse(os.path.exists(self.path("p.json.101")))
        self.finish(p)

    def test_a_handler_of_the_program_is_its_childrens_too(self):
        program = (
            "import os, signal, sys, time\n"
            "came = []\n"
            "signal.signal(signal.SIGUSR2, lambda *a: came.append(1))\n"
            "child = os.fork()\n"
            "kept = [bytearray(300_000) for i in range(40)]\n"  # in a child, this begins the thread
            "os.kill(os.getpid(), signal.SIGUSR2)\n"
            "end = time.monotonic() + 10\n"
            "while not came and time.monotonic() < end: time.sleep(0.01)\n"
            "if child: os.waitpid(child, 0)\n"
            "print('child' if child == 0 else 'parent', came)\n"
        )
        done = self.start([PYTHON, "-c", program], "rate=64K,profile=p%p.json,signal=USR2")
        self.assertEqual((done.stdout, done.stderr), ("child [1]\nparent [1]\n", ""))
        self.assertEqual([name for name in os.listdir(self.dir) if name.endswith(".json.1")], [])

    def test_signals_in_the_middle_of_allocations(self):
        p = self.run_program("rate=1K,profile=p.json,signal=USR1", [PYTHON, "-c", BUSY], "0\n")
        for _ in range(300):
            os.kill(p.pid, signal.SIGUSR1)
            time.sleep(0.002)
        self.assertTrue(p.stdout.readline().strip().isdigit())
        until(lambda: os.path.exists(self.path("p.json.1")))
        p.kill()
        p.communicate()
        with open(self.path("p.json.1")) as file:
            self.assertEqual(json.load(file)["schema"], "hakmem-report/1")

    def test_bad_settings(self):
        for item, expected in (
            ("profile=p,signal=KILL", "USR1, USR2, HUP or the number of a real-time signal expected"),
            ("profile=p,signal=11", "USR1, USR2"),
            ("profile=p,signal=", "USR1, USR2"),
            ("signal=USR1", "'signal': there is no profile=FILE to write"),
            ("rate=64K", "'rate': there is no profile: profile=FILE or probes=on expected"),
            ("rate=exact,live=on", "'rate': there is no profile: profile=FILE or probes=on expected"),
            ("live=", "on, off or a path with a slash expected"),
            ("live=maybe", "on, off or a path with a slash expected"),
        ):
            with self.subTest(item=item[:30]):
                done = self.start([STACKS, "known"], item)
                self.assertEqual((done.stdout, done.returncode), ("", 2))
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(expected, done.stderr)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_socket_that_cannot_be_had(self):
        for place, why in (("/" + "x" * 200, "File name too long"), ("/nowhere/x", "No such file or directory")):
            done = self.start([STACKS, "known"], f"live={place}")
            self.assertEqual((done.stdout, done.returncode), ("done\n", 0))
            self.assertRegex(done.stderr, rf"\Ahakmem: HAKMEM: no socket at /[^\n]*: {why}\n\Z")


if __name__ == "__main__":
    main()
