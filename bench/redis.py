#!/usr/bin/env python3
"""redis-server under the malloc shim and under other allocators: throughput, server CPU, memory.

Each sample is a fresh server on one CPU, driven by redis-benchmark on another, with pipelined requests over a
unix socket. The order of the allocators is shuffled within a repetition; figures are medians, ratios are
medians of ratios within a repetition.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIBRARIES = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
TESTS = ("set", "get", "lpush", "mset")
FOLDERS = [Path(p) for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")]


def library(name):
    return next((str(folder / name) for folder in FOLDERS if (folder / name).exists()), None)


def cpu_seconds(pid):
    """Of all threads, in the scheduler's own resolution."""
    return (
        sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    )


def memory_mib(pid, file, key):
    found = re.search(rf"^{key}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    return int(found.group(1)) / 1024


def pinned(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def sample(server, preload, options, cpus):
    """One server's life: {"set": {"rps", "cpu_us"}, ..., "rss_mib", "peak_mib"}."""
    with tempfile.TemporaryDirectory(prefix="hakmem-redis-") as folder:
        program, sock = Path(folder) / "redis-server", f"{folder}/socket"
        program.symlink_to(server)
        process = subprocess.Popen(
            [
                program,
                "--port",
                "0",
                "--unixsocket",
                sock,
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                folder,
            ],
            env={**os.environ, "LD_PRELOAD": preload},
            preexec_fn=pinned(cpus[0]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not os.path.exists(sock):
                if process.poll() is not None:
                    sys.exit(f"redis.py: the server does not start with {preload}")
                time.sleep(0.02)
            if os.path.basename(preload) not in Path(f"/proc/{process.pid}/maps").read_text():
                sys.exit(f"redis.py: {preload} is not loaded")
            result = {}
            for test in TESTS:
                before = cpu_seconds(process.pid)
                done = subprocess.run(
                    [
                        "redis-benchmark",
                        "-s",
                        sock,
                        "-t",
                        test,
                        "-n",
                        str(options.requests),
                        "-P",
                        "16",
                        "-c",
                        "20",
                        "-r",
                        str(options.keys),
                        "-d",
                        str(options.bytes),
                        "--csv",
                    ],
                    capture_output=True,
                    text=True,
                    check=True,
                    preexec_fn=pinned(cpus[-1]),
                )
                rps = float(done.stdout.splitlines()[-1].split('","')[1].strip('"'))
                used = cpu_seconds(process.pid) - before
                result[test] = {"rps": rps, "cpu_us": used / options.requests * 1e6}
            result["rss_mib"] = memory_mib(process.pid, "smaps_rollup", "Rss")
            result["peak_mib"] = memory_mib(process.pid, "status", "VmHWM")
            return result
        finally:
            process.kill()
            process.wait()


def figures_of(result):
    """One flat dictionary: throughput and CPU of each request, memory."""
    flat = {f"{t} {k}": result[t][k] for t in TESTS for k in ("rps", "cpu_us")}
    return {**flat, "rss_mib": result["rss_mib"], "peak_mib": result["peak_mib"]}


def table(samples, names):
    keys = list(figures_of(samples[0][names[0]]))
    yield "| figure | " + " | ".join(names) + " | hakmem / jemalloc |"
    yield "|---|" + "---|" * (len(names) + 1)
    for key in keys:
        columns = {n: [figures_of(s[n])[key] for s in samples] for n in names}
        cells = [f"{statistics.median(columns[n]):.4g}" for n in names]
        ratio = "-"
        if "jemalloc" in columns:
            ratio = "{:.3f}".format(
                statistics.median(a / b for a, b in zip(columns["hakmem"], columns["jemalloc"], strict=True))
            )
        yield f"| {key} | " + " | ".join(cells) + f" | {ratio} |"


def main():
    parser = argparse.ArgumentParser(prog="bench/redis.py", description=__doc__.split("\n")[0])
    parser.add_argument("shim", type=Path, help="libhakmem-preload.so")
    parser.add_argument("--reps", type=int, default=5, help="repetitions (5)")
    parser.add_argument("--requests", type=int, default=400000, help="of each kind (400000)")
    parser.add_argument("--keys", type=int, default=200000, help="different keys (200000)")
    parser.add_argument("--bytes", type=int, default=100, help="of a value (100)")
    parser.add_argument("--json", type=Path, help="write all samples here")
    options = parser.parse_args()
    server = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if not server or not shutil.which("redis-benchmark"):
        sys.exit("redis.py: no redis-server and redis-benchmark (Debian package: redis-tools)")
    preloads = {"hakmem": str(options.shim.resolve())}
    for name, file in LIBRARIES.items():
        if library(file):
            preloads[name] = library(file)
        else:
            print(f"redis.py: no {file}, {name} is left out", file=sys.stderr)
    cpus = sorted(os.sched_getaffinity(0))
    samples = []
    for rep in range(options.reps):
        order = list(preloads)
        random.Random(rep).shuffle(order)
        samples.append({name: sample(server, preloads[name], options, cpus) for name in order})
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1) + "\n")
    print("\n".join(table(samples, list(preloads))))


if __name__ == "__main__":
    main()
