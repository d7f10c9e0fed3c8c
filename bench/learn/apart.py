"""Would memory be saved if blocks of constant call sites whose blocks live long lay in slabs of their own?

apart.py --build BUILD/bench/learn [PROGRAM...]: records each program twice, with different data, learns from the
first recording, tries it on the second one, and prints a table. A compiler's token is a constant of its call
site: what a site does not tell, no token does.
"""

import argparse
import contextlib
import ctypes
import functools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BURSTS = 5


def sql(rng):
    """Rows that stay, and a burst of rows that go."""
    yield "create table kept(id integer primary key, name text, value blob);"
    for _ in range(BURSTS):
        n, size = rng.randint(3000, 6000), rng.randint(20, 120)
        yield f"create table brief(id integer primary key, name text, value blob);with recursive n(i) as (select 1 union all select i+1 from n where i < {4 * n}) insert into brief select i, 'name ' || abs(random() % 100000), randomblob({size}) from n;"
        yield f"create index by_name on brief(name); insert into kept(name, value) select name, value from brief where id % {rng.randint(9, 14)} = 0; drop table brief;"


PYTHON = """import random; r = random.Random(SEED); kept = {}
for burst in range(5):
    brief = {f"name {r.random()}": ["x" * r.randint(1, 90), i, (i, str(i))] for i in range(r.randint(15000, 23000))}
    kept.update(list(brief.items())[::12])
    brief.clear()"""
PHP = """<?php mt_srand(SEED); $kept = [];
for ($burst = 0; $burst < 5; $burst++) {
    $brief = [];
    for ($i = 0, $n = mt_rand(15000, 23000); $i < $n; $i++) $brief["name " . mt_rand()] = [str_repeat("x", mt_rand(1, 90)), $i, [$i]];
    $i = 0;
    foreach ($brief as $k => $v) if ($i++ % 12 == 0) $kept[$k] = $v;
    unset($brief); gc_collect_cycles();
}"""


def burst_of(rng, burst, n):
    for i in range(n):
        if rng.random() < 0.1:
            yield "SET", f"kept:{burst}:{i}", "v" * rng.randint(10, 200)
        kind = i % 3
        if kind == 0:
            yield "SET", f"brief:{i}", "x" * rng.randint(10, 300)
        elif kind == 1:
            yield "HSET", f"brief:{i}", "a", i, "b", "y" * rng.randint(1, 60)
        else:
            yield "RPUSH", f"brief:{i}", i, "z" * rng.randint(1, 60)


def redis(rng, path):
    """Speaks to the server: keys that stay, strings, hashes and lists that go."""
    with socket.socket(socket.AF_UNIX) as s:
        for _ in range(200):
            if s.connect_ex(path) == 0:
                break
            time.sleep(0.05)
        answers = s.makefile("rb")

        def send(commands):
            data, count = [], 0
            for command in commands:
                parts = [str(c).encode() for c in command]
                data.append(f"*{len(parts)}\r\n".encode() + b"".join(f"${len(p)}\r\n".encode() + p + b"\r\n" for p in parts))
                count += 1
                if count == 200:
                    s.sendall(b"".join(data))
                    for _ in range(count):
                        answers.readline()
                    data, count = [], 0
            s.sendall(b"".join(data))
            for _ in range(count):
                answers.readline()

        for burst in range(BURSTS):
            n = rng.randint(15000, 25000)
            send(burst_of(rng, burst, n))
            send(("DEL", f"brief:{i}") for i in range(n))
        with contextlib.suppress(OSError):
            send([("SHUTDOWN", "NOSAVE")])


def record(build, folder, name, seed):
    path = folder / f"{name}-{seed}.trace"
    rng = random.Random(seed)
    # libc's malloc_usable_size before that of a jemalloc which the program is linked with.
    env = {**os.environ, "LD_PRELOAD": f"{(build / 'learn-record.so').resolve()} libc.so.6", "HAK_RECORD": str(path), "HAK_RECORD_SITES": "1",
           "USE_ZEND_ALLOC": "0", "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    sock = folder / f"{seed}.sock"
    commands = {
        "sqlite3": ["sqlite3", ":memory:", " ".join(sql(rng))],
        "python": ["/usr/bin/python3", "-c", PYTHON.replace("SEED", str(seed))],
        "php": ["php", "-d", "memory_limit=-1", "-r", PHP.replace("SEED", str(seed)).removeprefix("<?php ")],
        "redis": [os.environ.get("REDIS_SERVER", "redis-server"), "--port", "0", "--unixsocket", str(sock), "--save", "", "--daemonize", "no"],
    }
    # The same addresses in each run.
    fixed = functools.partial(ctypes.CDLL(None).personality, 0x0040000)
    with subprocess.Popen(commands[name], env=env, stdout=subprocess.DEVNULL, cwd=folder, preexec_fn=fixed) as program:
        if name == "redis":
            redis(rng, str(sock))
        if program.wait(600):
            sys.exit(f"apart: {name} ended with {program.returncode}")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("programs", nargs="*", default=["redis", "sqlite3", "php", "python"])
    args = parser.parse_args()
    print("| program | key | keys | troughs | in troughs, MiB | apart | known | precision | recall |\n|---|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.programs:
            traces = [str(record(args.build, Path(folder), name, seed)) for seed in (1, 2)]
            done = subprocess.run([args.build / "learn-apart", *traces], capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"| {name} | {done.stderr.strip()} | | | | | | | |")
                continue
            for line in map(json.loads, done.stdout.splitlines()):
                one = line["one"]
                print(f"| {name} | {line['key']} | {line['keys']} | {line['troughs']} | {one / 2**20:.2f} | {line['two'] / one - 1:+.1%} | "
                      f"{line['known'] / one - 1:+.1%} | {line['precision']:.2f} | {line['recall']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
