"""What the tests of the malloc shim share: programs with and without it, and its reports.

A test is called with the shim and the folder of the helper programs as its first two arguments.
"""

import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from waiting import until  # noqa: E402

SHIM = sys.argv.pop(1)
HELPERS = sys.argv.pop(1)
PYTHON = "/usr/bin/python3"
HEAD = re.compile(r"^hakmem \d+\.\d+\.\d+: (.*), process (\d+): \d+ bytes in \d+ blocks$", re.M)
ROW = re.compile(r"^  (\w+(?: \w+)?) +(\d+)", re.M)


def reports(text):
    """One dictionary a report: name, process, and the figures by their names."""
    parts = HEAD.split(text)[1:]
    return [
        {
            "name": parts[i],
            "process": int(parts[i + 1]),
            **{key: int(value) for key, value in ROW.findall(parts[i + 2])},
        }
        for i in range(0, len(parts), 3)
    ]


class Case(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hakmem-preload-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name, text=None):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest(f"no program {program} on this machine")

    def environment(self, settings=None):
        """settings None: without the shim."""
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "HAKMEM")}
        env.update(LC_ALL="C.UTF-8", HOME=self.dir, PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        # Python 3.12 and later warn of forks beside threads, and the shim's thread is one.
        env["PYTHONWARNINGS"] = "ignore:This process:DeprecationWarning"
        if settings is not None:
            env.update(LD_PRELOAD=SHIM, HAKMEM=settings)
        return env

    def start(self, command, settings=None, stdin="", cwd=None, **env):
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=cwd or self.dir,
            env={**self.environment(settings), **env},
        )

    def both(self, command, stdin="", prepare=None, **env):
        """The same with and without the shim: same output, same status. Returns the reports."""
        results = []
        log = self.path("report")
        for settings in (None, f"report={log},name=under-test"):
            folder = tempfile.mkdtemp(dir=self.dir)
            work = os.path.join(self.dir, "work")  # the same name for both
            if os.path.lexists(work):
                os.unlink(work)
            os.symlink(folder, work)
            if prepare:
                prepare(work)
            results.append(self.start(command, settings, stdin, cwd=work, **env))
        plain, under = results
        self.assertEqual(under.stdout, plain.stdout)
        self.assertEqual(under.stderr, plain.stderr)
        self.assertEqual(under.returncode, plain.returncode)
        with open(log) as file:
            found = reports(file.read())
        self.assertTrue(found, "no report: the shim was not in use")
        for report in found:
            self.assertEqual(report["name"], "under-test")
            self.assertGreater(report["peak live"], 0)
        return plain, found


def accepts(socket_path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(socket_path) == 0


class Server(Case):
    """Servers that listen on a socket of the test's folder."""

    def serve(self, command, socket_path, settings, **env):
        with open(self.path("output"), "w") as output:
            process = subprocess.Popen(
                command,
                env={**self.environment(settings), **env},
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        until(lambda: accepts(socket_path) or process.poll() is not None, "the server does not come up")
        if process.poll() is not None:
            self.fail("the server did not come up: " + self.output())
        return process

    def output(self):
        with open(self.path("output")) as output:
            return output.read()

    def ask(self, socket_path, path, headers=None):
        """Status and body of a GET."""
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        try:
            connection.sock.connect(socket_path)
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def found(self):
        with open(self.path("report")) as file:
            return reports(file.read())


def main():
    """Skips are told with their reasons; a file of which nothing ran is skipped as a whole."""
    result = unittest.main(exit=False).result
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    everything = result.testsRun > 0 and len(result.skipped) == result.testsRun
    sys.exit(77 if everything else not result.wasSuccessful())
