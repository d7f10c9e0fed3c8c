"""--hak-live: a program is looked at while it runs. test_live.py LAUNCHER COMMAND"""

import json
import os
import socket
import subprocess
import sys
import unittest

from outside import FolderCase, environment

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until_it_reads  # noqa: E402

LAUNCHER = sys.argv.pop(1)
COMMAND = sys.argv.pop(1)
# Reads a word and does as it says; `spin` allocates until a file is there, `fork` leaves by way of os.exit.
PROGRAM = """
local kept = {}
local function keep(n) for i = 1, n do kept[#kept + 1] = {i} end end
local function spin(name) while not io.open(name) do for i = 1, 1000 do kept[i] = {i} end end end
for word in io.lines() do
  if word == "keep" then keep(20000) print(#kept)
  elseif word == "coroutine" then coroutine.wrap(function() spin("stop") end)() print("stopped")
  elseif word == "spin" then spin("stop") print("stopped")
  elseif word == "exit" then os.exit(0, true)
  elseif word == "fork" then
    local ffi = require("ffi")
    ffi.cdef("int fork(void); int waitpid(int process, int *status, int options);")
    local child, status = ffi.C.fork(), ffi.new("int[1]")
    if child == 0 then keep(1000) os.exit(0, true) end
    ffi.C.waitpid(child, status, 0)
    print("child", status[0])
  else print(word) end
  io.flush()
end
"""


class Live(FolderCase):
    def start(self, *options):
        self.write("a.lua", PROGRAM)
        p = subprocess.Popen([LAUNCHER, *options, "a.lua"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=self.dir, env=environment())
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        self.assertEqual(self.say(p, "ready"), "ready\n")
        return p

    def tell(self, p, word):
        p.stdin.write(word + "\n")
        p.stdin.flush()

    def say(self, p, word):
        self.tell(p, word)
        return p.stdout.readline()

    def attach(self, process, *options, status=0):
        done = subprocess.run([COMMAND, "attach", str(process), *options], capture_output=True, text=True,
                              cwd=self.dir, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def place(self, p):
        return f"/tmp/hakmem-{os.geteuid()}/{p.pid}"

    def look_while(self, p, word):
        """What is seen while the program runs, several times."""
        self.tell(p, word)
        for i in range(5):
            self.attach(p.pid, "-o", "now.json")
            with open(os.path.join(self.dir, "now.json")) as file:
                report = json.load(file)
        self.write("stop", "")
        self.assertEqual(p.stdout.readline(), "stopped\n")
        return report

    def test_a_program_that_works(self):
        for word in ("spin", "coroutine"):
            for profile in ("--hak-profile=p.json,16K", "--hak-profile=p.json,exact"):
                p = self.start("--hak-live=on", profile)
                report = self.look_while(p, word)
                self.assertEqual(report["process"]["pid"], p.pid)
                context = report["contexts"][0]
                self.assertTrue(any(f.get("file") == "a.lua" for f in context["frames"]))
                self.assertEqual(sum(l["live_bytes"] for l in context["labels"]), context["stats"]["live_bytes"])
                os.unlink(os.path.join(self.dir, "stop"))
                _, err = p.communicate(timeout=60)
                self.assertEqual((err, p.returncode), ("", 0))
                self.assertFalse(os.path.exists(self.place(p)))
                self.assertTrue(os.path.exists(os.path.join(self.dir, "p.json")))

    def test_without_a_profile_and_without_labels(self):
        for options in ((), ("--hak-labels=off",)):
            p = self.start("--hak-live=on", *options)
            context = self.look_while(p, "spin")["contexts"][0]
            self.assertGreater(context["stats"]["live_bytes"], 20000)
            self.assertNotIn("profile", context)
            os.unlink(os.path.join(self.dir, "stop"))
            p.communicate(timeout=60)

    def test_one_whose_heap_is_shared_answers_while_it_waits(self):
        p = self.start("--hak-live=on", "--hak-shared")
        self.say(p, "keep")
        until_it_reads(p)
        self.attach(p.pid, "-o", "now.json")
        with open(os.path.join(self.dir, "now.json")) as file:
            context = json.load(file)["contexts"][0]
        self.assertEqual(sum(l["live_bytes"] for l in context["labels"]), context["stats"]["live_bytes"])
        self.assertGreater(context["stats"]["live_bytes"], 20000 * 16)
        self.look_while(p, "spin")
        p.communicate(timeout=60)

    def test_one_that_waits_does_not_answer_and_is_not_held_up(self):
        p = self.start("--hak-live=on")
        self.say(p, "keep")
        until_it_reads(p)  # what it has still to do after its answer could serve a request
        self.assertIn("the process gave no report", self.attach(p.pid, status=1))
        self.assertEqual(self.say(p, "word"), "word\n")
        self.assertEqual(self.say(p, "keep"), "40000\n")
        self.look_while(p, "spin")  # later ones are served

    def test_exit_closes_the_state_while_somebody_looks(self):
        p = self.start("--hak-live=on")
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(self.place(p))
        self.tell(p, "exit")
        _, err = p.communicate(timeout=60)
        self.assertEqual((err, p.returncode), ("", 0))
        peer.close()

    @unittest.skipUnless("luajit" in os.path.basename(LAUNCHER), "no fork in Lua")
    def test_a_forked_child_leaves_the_socket_to_its_parent(self):
        p = self.start("--hak-live=on")
        self.assertEqual(self.say(p, "fork"), "child\t0\n")
        self.assertTrue(os.path.exists(self.place(p)))
        self.assertEqual(self.look_while(p, "spin")["process"]["pid"], p.pid)

    def test_a_socket_of_ones_own(self):
        p = self.start("--hak-live=./here-%p")
        self.tell(p, "spin")
        path = os.path.join(self.dir, f"here-{p.pid}")
        done = subprocess.run([COMMAND, "top", f"./here-{p.pid}"], capture_output=True, text=True, cwd=self.dir, timeout=60)
        self.assertIn(f"process {p.pid},", done.stdout)
        self.write("stop", "")
        p.communicate(timeout=60)
        self.assertFalse(os.path.exists(path))

    def test_what_cannot_be_is_told(self):
        self.write("a.lua", "print('ran')")
        for option, told in (
            ("--hak-live=", "--hak-live: '': on, off or a path with a slash expected"),
            ("--hak-live=yes", "--hak-live: 'yes': on, off or a path with a slash expected"),
            ("--hak-live=/nowhere/socket", "no socket at /nowhere/socket: No such file or directory"),
            ("--hak-live=./" + "x" * 200, "File name too long"),
        ):
            done = subprocess.run([LAUNCHER, option, "a.lua"], capture_output=True, text=True, cwd=self.dir, timeout=60)
            self.assertEqual((done.stdout, done.returncode), ("", 1))
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(told, done.stderr)
            self.assertEqual(os.listdir(self.dir), ["a.lua"])

    def test_off_is_none(self):
        self.write("a.lua", "print((os.rename('off', 'was')))")
        for options in (["--hak-live=off"], ["--hak-live=./socket", "--hak-live=off"]):
            done = subprocess.run([LAUNCHER, *options, "a.lua"], capture_output=True, text=True, cwd=self.dir, timeout=60)
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("nil\n", "", 0))


if __name__ == "__main__":
    unittest.main()
