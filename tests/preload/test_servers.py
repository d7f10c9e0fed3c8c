"""Servers under the shim: redis with its benchmark, nginx with several workers."""

import os
import shutil
import signal
import threading

from shim import Server, main, until

REDIS_SCRIPT = "".join(
    f"SET key:{i} {'v' * (1 + i % 300)}\nLPUSH list:{i % 7} {i}\nHSET hash:{i % 5} f{i} {i}\n"
    f"ZADD zset {i * 7919 % 1009} m{i}\n"
    for i in range(2000)
)
REDIS_SCRIPT += "DEBUG DIGEST\nLRANGE list:3 0 5\nZRANGE zset 0 3 WITHSCORES\nDBSIZE\nBGSAVE\n"

NGINX = """
daemon off; worker_processes 2; pid {dir}/pid; error_log {dir}/error.log; {user}
events {{ worker_connections 64; }}
http {{
    access_log off; gzip on; gzip_min_length 1; gzip_types text/plain; client_body_temp_path {dir}/t;
    proxy_temp_path {dir}/t; fastcgi_temp_path {dir}/t; uwsgi_temp_path {dir}/t; scgi_temp_path {dir}/t;
    server {{ listen unix:{dir}/http; root {dir}/www; default_type text/plain;
              location ~ ^/file(.*)$ {{ ssi on; }} }}
}}
"""


class Redis(Server):
    def cli(self, text):
        return self.start(["redis-cli", "-s", self.path("socket")], None, text).stdout

    def scenario(self, settings):
        """All that is the same in every run; the benchmark in the middle is for the load."""
        sock, dump = self.path("socket"), self.path("dump.rdb")
        process = self.serve(
            [
                self.path("redis-server"),
                "--port",
                "0",
                "--unixsocket",
                sock,
                "--save",
                "",
                "--io-threads",
                "2",
                "--enable-debug-command",
                "local",
                "--dir",
                self.dir,
            ],
            sock,
            settings,
        )
        output = self.cli(REDIS_SCRIPT)
        done = self.start(
            [
                "redis-benchmark",
                "-s",
                sock,
                "-n",
                "20000",
                "-P",
                "16",
                "-r",
                "5000",
                "-d",
                "100",
                "-t",
                "set,get,lpush,mset",
                "-q",
            ]
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("requests per second"), 4, done.stdout[-500:])
        # The snapshot is made by a forked child.
        until(lambda: "rdb_bgsave_in_progress:0" in self.cli("INFO persistence\n"), "the snapshot does not end")
        self.assertIn("rdb_last_bgsave_status:ok", self.cli("INFO persistence\n"))
        self.assertGreater(os.path.getsize(dump), 10000)
        self.cli("FLUSHALL ASYNC\n")
        output += self.cli(REDIS_SCRIPT)
        self.cli("SHUTDOWN NOSAVE\n")
        self.assertEqual(process.wait(30), 0)
        os.unlink(dump)
        return output

    def test_redis(self):
        self.need("redis-cli", "redis-benchmark", "redis-check-rdb")
        # Debian's server is the checker by another name, in a package that starts no service.
        os.symlink(shutil.which("redis-server") or shutil.which("redis-check-rdb"), self.path("redis-server"))
        under = self.scenario(f"report={self.path('report')},name=server")
        plain = self.scenario(None)
        self.assertTrue(under == plain, f"ends with {under[-300:]!r}, not with {plain[-300:]!r}")
        report = max(self.found(), key=lambda r: r["peak live"])
        self.assertGreater(report["peak live"], 1 << 20)
        self.assertGreater(report["threads"], 1)


def children(pid):
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = file.read().rsplit(")", 1)[1].split()[1]
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == pid:
            found.add(name)
    return found


class Nginx(Server):
    def get(self, path, zipped):
        return self.ask(self.path("http"), path, {"Accept-Encoding": "gzip"} if zipped else {})[1]

    def test_nginx(self):
        self.need("nginx")
        os.chmod(self.dir, 0o755)
        os.mkdir(self.path("www"))
        for i in range(20):
            self.path(f"www/file{i}", f"line of {i}\n" * (i * 500))
        user = "user root;" if os.geteuid() == 0 else ""
        config = self.path("nginx.conf", NGINX.format(dir=self.dir, user=user))
        process = self.serve(
            ["nginx", "-c", config, "-p", self.dir, "-e", self.path("error.log")],
            self.path("http"),
            f"report={self.path('report')},name=server",
        )
        wrong = []

        def client():
            for i in range(40):
                body = self.get(f"/file{i % 20}", i % 2)
                if i % 2 == 0 and body != f"line of {i % 20}\n".encode() * (i % 20 * 500):
                    wrong.append(i)

        threads = [threading.Thread(target=client) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        before = children(process.pid)
        process.send_signal(signal.SIGHUP)  # new workers beside the old ones
        until(lambda: children(process.pid) - before, "no new workers")
        self.assertEqual(self.get("/file3", False), b"line of 3\n" * 1500)
        process.send_signal(signal.SIGQUIT)
        self.assertEqual(process.wait(30), 0)
        self.assertGreaterEqual(len(self.found()), 3)  # the master and two workers at least


if __name__ == "__main__":
    main()
