#!/usr/bin/env python3
"""examples/wasm-server --live: `hakmem attach` and `hakmem top` at a server that runs scripts."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from server_process import Server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from waiting import until  # noqa: E402

HAKMEM = os.environ["HAKMEM_COMMAND"]


class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem-server-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.socket = self.folder / "socket"

    def hakmem(self, *words, status=0):
        done = subprocess.run([HAKMEM, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def contexts(self, pid):
        """By name, what the server shows now."""
        self.hakmem("attach", pid, "-o", self.folder / "now.json")
        report = json.loads((self.folder / "now.json").read_text())
        self.assertEqual((report["schema"], report["process"]["runtime"]["name"]), ("hakmem-report/1", "wasm"))
        return {context["name"]: context for context in report["contexts"]}

    def test_each_customer_is_seen(self):
        with Server("--live") as server:
            pid = server.process.pid
            self.assertEqual(self.contexts(pid), {})
            for name in ("ann", "bob"):
                self.assertEqual(server.run(name, "6 * 7"), (200, "42"))
            seen = self.contexts(pid)
            self.assertEqual(sorted(seen), ["ann", "ann linear", "bob", "bob linear"])
            server.run("bob", "let all = ''; for (let i = 0; i < 22; i++) all += all + 'x'; all.length")
            for name in ("ann", "bob"):
                linear = seen[f"{name} linear"]
                self.assertGreater(linear["stats"]["live_bytes"], 2**20)
                self.assertGreater(sum(s["live_bytes"] for s in linear["stacks"]), 2**20)
                # The guests share the pages of one image.
                memories = seen[name]["linear"]
                self.assertGreater(memories["memories"], 0)
                self.assertGreater(memories["bytes"], 2**20)
                self.assertGreater(memories["proportional_bytes"], memories["resident_bytes"])
            # A customer's report is of its own: what bob allocates is not ann's.
            again = self.contexts(pid)
            self.assertEqual(again["ann linear"]["stats"], seen["ann linear"]["stats"])
            # The linear memories are a part of the resident memory, which is told in full.
            memory = json.loads((self.folder / "now.json").read_text())["memory"]
            total = sum(part["bytes"] for part in memory["parts"])
            self.assertAlmostEqual(total, memory["resident_bytes"], delta=0.02 * memory["resident_bytes"])
            parts = {part["kind"]: part["bytes"] for part in memory["parts"]}
            self.assertGreater(parts["guests"], 2**17)
            self.assertLess(parts["guests"], sum(c["stats"]["live_bytes"] for n, c in again.items() if n.endswith(" linear")))
            text = self.hakmem("attach", pid).stdout
            self.assertIn(f"process {pid}, wasm", text)
            self.assertIn(" linear ", text)
            text = self.hakmem("report", self.folder / "now.json").stdout
            self.assertEqual(len(re.findall(r"(?m)^  linear memories: [1-9].*, resident .*, proportional .", text)), 2)

    def test_without_it_nobody_looks(self):
        with Server() as server:
            server.run("ann", "1")
            self.assertIn("does not listen", self.hakmem("attach", server.process.pid, status=1).stderr)

    def test_a_socket_of_its_own(self):
        with Server(f"--live={self.socket}") as server:
            server.run("ann", "1")
            self.assertEqual(stat.S_IMODE(self.socket.stat().st_mode), 0o600)
            self.assertIn(" linear ", self.hakmem("top", self.socket).stdout)
        self.assertFalse(self.socket.exists())

    def test_a_server_that_cannot_be_looked_at_serves(self):
        with Server(f"--live={self.folder}/none/socket") as server:
            self.assertEqual(server.run("ann", "6 * 7"), (200, "42"))
        self.assertRegex(server.errors, r"^wasm-server: --live: [^\n]+\n$")

    def test_beside_scripts_and_customers_who_go(self):
        with Server("--live", "--customers=5") as server:
            over, answers = threading.Event(), []

            def work(number):
                for i in range(1000):
                    if over.is_set():
                        return
                    answers.append(server.run(f"c{(number + i) % 8}", "'x'.repeat(1000).length"))

            threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            try:
                until(lambda: len(answers) > 8, "no script ends")
                for _ in range(5):
                    seen = self.contexts(server.process.pid)
                    self.assertGreater(len(seen), 0)
                    self.assertLessEqual({name.split()[0] for name in seen}, {f"c{i}" for i in range(8)})
            finally:
                over.set()
                for thread in threads:
                    thread.join()
            self.assertEqual(set(answers), {(200, "1000")})
        self.assertEqual(server.errors, "")


if __name__ == "__main__":
    unittest.main()
