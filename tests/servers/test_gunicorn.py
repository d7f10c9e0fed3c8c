"""Python under gunicorn: workers meet the limit and go on; a report of each."""

import json
import os
import signal
import subprocess
import sys

from guide import Guided, main, until


class Gunicorn(Guided):
    def test_workers_at_the_limit(self):
        for module, package in (("gunicorn", "Debian package: gunicorn"), ("hakmem._hakmem", "built for another")):
            if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
                self.skipTest(f"no {module} for {sys.executable} ({package})")
        self.path("app.py", self.block("python", "app.py"))
        socket = self.path("http")
        master = self.run_page(
            "gunicorn",
            [("python3", f"{sys.executable} -B"), ("127.0.0.1:8000", "unix:" + socket)],
            socket,
            preload=False,
            PYTHONPATH=os.environ["PYTHONPATH"],
        )
        self.assertIn(b"worker", self.ask(socket, "/")[1])
        workers = until(lambda: len(self.children(master)) == 2 and self.children(master), "not two workers")
        met = set()
        for _ in range(4):
            self.assertEqual(self.ask(socket, "/fill")[0], 503)
            status, text = self.ask(socket, "/")
            self.assertEqual(status, 200)
            met.add(int(text.split()[1]))
        self.assertEqual(self.children(master), workers)
        self.assertLessEqual(met, workers)
        report = self.start(
            [sys.executable, "-m", "hakmem", "report", str(min(met))],
            PYTHONPATH=os.environ["PYTHONPATH"],
        ).stdout
        self.assertRegex(report, rf"process {min(met)},")
        self.assertRegex(report, r"limit 64\.00 MiB, \d+ allocations refused")
        master.send_signal(signal.SIGTERM)
        self.assertEqual(master.wait(60), 0)
        refused = 0
        for pid in workers:
            with open(self.path(f"worker-{pid}.json")) as file:
                found = json.load(file)
            refused += found["contexts"][0]["stats"]["failures"]
        self.assertGreaterEqual(refused, 4)


if __name__ == "__main__":
    main()
