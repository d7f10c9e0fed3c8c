"""redis-server with a cache and a queue: jobs are pushed beside keys that stay, and taken later. The
environment is the server's. A trough comes when the queue is empty."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

random.seed(int(sys.argv[1]))
preload = os.environ.pop("HAK_SERVER_PRELOAD")


def command(*words):
    words = [str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def push(i):
    job = random.randrange(1000)
    yield command("SET", f"cache:{random.randrange(30000)}", "v" * random.randrange(20, 400))
    yield command("SADD", "jobs", f"job:{i}")
    body = "b" * random.randrange(30, 600)
    yield command("HSET", f"job:{i}", "kind", job % 7, "body", body, "owner", f"user {job}")
    yield command("RPUSH", f"session:{random.randrange(3000)}", f"seen {i}")


def main(folder):
    server, path = pathlib.Path(folder) / "redis-server", f"{folder}/socket"
    server.symlink_to("/usr/bin/redis-check-rdb")
    options = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder]
    environment = {**os.environ, "LD_PRELOAD": preload}
    process = subprocess.Popen([server, *options], env=environment, stdout=subprocess.DEVNULL)
    while not os.path.exists(path):
        if process.poll() is not None:
            sys.exit("redis: the server does not start")
        time.sleep(0.02)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        answers = connection.makefile("rb")

        def send(commands):
            for c in commands:
                connection.sendall(c)
                answers.readline()

        for wave in range(6):
            jobs = range(wave * 10000, wave * 10000 + random.randrange(2500, 3500))
            for i in jobs:
                send(push(i))
            send(command("DEL", f"job:{i}") for i in jobs)
            send([command("DEL", "jobs")])
            process.send_signal(signal.SIGUSR2)
            send([command("PING")])
        connection.sendall(command("SHUTDOWN", "NOSAVE"))
    return process.wait()


with tempfile.TemporaryDirectory(prefix="hakmem-lifetime-") as folder:
    sys.exit(main(folder))
