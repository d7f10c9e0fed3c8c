"""redis under the shim: scripts meet the limit, redis goes on; from 7.4 on it ends itself there."""

import os
import re
import shutil

from guide import Guided, main


class Redis(Guided):
    def cli(self, *arguments):
        done = self.start(["redis-cli", "-s", self.path("socket"), *arguments])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_scripts_at_the_limit(self):
        self.need("redis-cli", "redis-check-rdb")
        # Debian's server is the checker by another name, in a package that starts no service.
        os.symlink(shutil.which("redis-server") or shutil.which("redis-check-rdb"), self.path("redis-server"))
        process = self.run_page(
            "redis",
            [
                ("redis-server", self.path("redis-server")),
                ("--port 6379", f"--port 0 --unixsocket {self.path('socket')}"),
                ("redis.report", self.path("report")),
            ],
            self.path("socket"),
        )
        self.assertEqual(self.cli("SET", "key", "value"), "OK")
        fill = self.block("lua", "redis")
        version = re.search(r"v=(\d+)\.(\d+)", self.start([self.path("redis-server"), "--version"]).stdout)
        if tuple(map(int, version.groups())) >= (7, 4):
            self.start(["redis-cli", "-s", self.path("socket"), "EVAL", fill, "0"])
            _, process.returncode, usage = os.wait4(process.pid, 0)
            self.assertNotEqual(process.returncode, 0)
            self.assertRegex(self.output(), r"Out Of Memory allocating \d+ bytes")
            self.assertGreater(usage.ru_maxrss, 40 << 10)  # KiB
            self.assertLess(usage.ru_maxrss, 128 << 10)  # of the program and its libraries, too
            return
        for n in range(3):
            self.assertIn("not enough memory", self.cli("EVAL", fill, "0"))
            self.assertEqual(self.cli("GET", "key"), "value")
            self.assertEqual(self.cli("RPUSH", "list", str(n)), str(n + 1))
        self.start(["redis-cli", "-s", self.path("socket"), "SHUTDOWN", "NOSAVE"])
        self.assertEqual(process.wait(60), 0, self.output())
        report = max(self.found(), key=lambda r: r["peak live"])
        self.assertGreaterEqual(report["failures"], 3)
        self.assertGreater(report["peak live"], 40 << 20)
        self.assertLess(report["peak live"], 64 << 20)


if __name__ == "__main__":
    main()
