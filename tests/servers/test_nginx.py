"""nginx with Lua: the state of each worker under hakmem, a report of one, a limit that is met."""

import http.client
import os
import re
import signal
import subprocess

from guide import HERE, Guided, main, until

FOLDER, MODULES = os.environ["NGINX_LUA"], os.environ["LUA_MODULES"]


class Nginx(Guided):
    def start_nginx(self):
        self.need("nginx")
        fetched = subprocess.run([os.path.join(HERE, "nginx_lua.sh"), FOLDER], capture_output=True, text=True)
        if fetched.returncode == 77:
            self.skipTest("no Lua module for nginx: " + fetched.stdout.strip())
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        config = self.block(
            "nginx",
            "nginx.conf",
            [
                ("/usr/lib/nginx/modules/", FOLDER + "/usr/lib/nginx/modules/"),
                ("127.0.0.1:8080", f"unix:{self.path('http')}"),
                ("/opt/hakmem/lib/lua/5.1/?.so", MODULES + "/?.so"),
                ("http {", f'http {{ lua_package_path "{FOLDER}/usr/share/lua/5.1/?.lua;;";' + self.temporary()),
            ],
        )
        user = "user root;" if os.geteuid() == 0 else ""
        self.path("nginx.conf", f"{user} pid {self.path('pid')}; error_log {self.path('log')} notice;\n{config}")
        found = subprocess.run(
            ["find", FOLDER, "-name", "lib*.so.*", "-printf", "%h\n"], capture_output=True, text=True
        ).stdout
        libraries = ":".join(sorted(set(found.split())))
        tried = self.start(
            ["nginx", "-t", "-p", self.dir, "-c", "nginx.conf", "-e", self.path("log")], LD_LIBRARY_PATH=libraries
        )
        if re.search(r"is not binary compatible|module .* version", tried.stderr):
            self.skipTest("the Lua module is for another nginx: " + tried.stderr.strip().splitlines()[0])
        return self.run_page(
            "nginx",
            [("-p .", f"-p {self.dir} -e {self.path('log')}"), ("nginx.report", self.path("report"))],
            self.path("http"),
            LD_LIBRARY_PATH=libraries,
        )

    def temporary(self):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        return " ".join(f"{kind}_temp_path {self.path('temporary')};" for kind in kinds)

    def get(self, path):
        status, text = self.ask(self.path("http"), path)
        return status, text.decode()

    def test_guide(self):
        master = self.start_nginx()
        workers = until(lambda: len(self.children(master)) == 2 and self.children(master), "not two workers")
        status, text = self.get("/")
        self.assertEqual((status, int(text.split()[1]) in workers), (200, True))

        status, text = self.get("/report")
        self.assertEqual(status, 200)
        self.assertIn(int(re.search(r"process (\d+):", text)[1]), workers)
        self.assertRegex(text, r"hard limit +25165824 ")
        self.assertRegex(text, r"\n  hash +\d+ ")  # there are labels

        for _ in range(6):
            self.assertEqual(self.get("/caught"), (503, "not enough memory\n"))
            self.assertEqual(self.get("/")[0], 200)
        self.assertEqual(self.children(master), workers, self.log())

        with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError)):
            self.get("/uncaught")
        after = until(
            lambda: len(self.children(master)) == 2 and self.children(master) != workers and self.children(master),
            "no new worker",
        )
        self.assertEqual(len(after & workers), 1)
        self.assertEqual(self.get("/")[0], 200)
        self.assertEqual(self.log().count("memory allocation error"), 1)

        master.send_signal(signal.SIGQUIT)
        self.assertEqual(master.wait(60), 0, self.log())
        reported = {report["process"] for report in self.found()}
        self.assertLessEqual(after | {master.pid}, reported)

    def log(self):
        with open(self.path("log")) as file:
            return file.read()


if __name__ == "__main__":
    main()
