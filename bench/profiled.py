#!/usr/bin/env python3
"""What a sampled profile takes of whole programs, in instructions that valgrind counts, so that a busy machine does no
harm:

    bench/profiled.py --redis SHIM                redis-server under the malloc shim, with and without a profile
    bench/profiled.py --models PYTHON HOOK        bench/python/models.py under Python's hook, which needs pydantic in that
                                                  Python: alone, with --all, and with a profile

Of redis the instructions of the shim itself are compared, since redis' own differ by a per cent from run to run. Of the
loop of models.py the difference of two lengths is taken, so that the imports are not in it; each length is run with
several sizes of the environment, which move addresses, and the median counts. There are no windows, which begin by the
clock: valgrind takes its time.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fail(text):
    sys.exit(f"profiled.py: {text}")


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HAKMEM") and k not in ("LD_PRELOAD", "PYTHONPATH")}
    return kept | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"} | more


def command(out):
    """Addresses are those of the last time."""
    return ["setarch", "-R", "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]


def collected(text):
    found = re.search(r"Collected : (\d+)", text)
    return int(found[1]) if found else fail(f"valgrind did not count:\n{text[-1000:]}")


def of_object(out, word):
    """The instructions of code in a file of this name."""
    done = subprocess.run(["callgrind_annotate", "--threshold=100", out], capture_output=True, text=True, check=True)
    rows = re.findall(r"^\s*([\d,]+) .*\[[^]]*/([^/]*)\]$", done.stdout, re.M)
    return sum(int(n.replace(",", "")) for n, name in rows if name == word)


def redis(shim, settings, requests):
    """All instructions of one server's life, and those of the shim."""
    tool = next((p for p in ("/usr/bin/redis-server", "/usr/bin/redis-check-rdb") if os.path.exists(p)), None)
    if not tool:
        fail("there is no redis-server")
    with tempfile.TemporaryDirectory(prefix="hakmem-redis-") as folder:
        server, sock, out = Path(folder, "redis-server"), Path(folder, "socket"), Path(folder, "out")
        server.symlink_to(tool)  # one program, which is what it is called
        process = subprocess.Popen(
            [*command(out), server, "--port", "0", "--unixsocket", sock, "--save", "", "--daemonize", "no"],
            env=environment(LD_PRELOAD=shim, HAKMEM=settings),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not sock.exists():
            if process.poll() is not None:
                fail(f"redis-server ended: {process.stderr.read()[-1000:]}")
            time.sleep(0.1)
        for test in ("set", "lpush", "hset"):
            subprocess.run(
                ["redis-benchmark", "-s", sock, "-n", str(requests), "-c", "1", "-P", "16", "-d", "200", "-q", "-t", test],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        subprocess.run(["redis-cli", "-s", sock, "shutdown", "nosave"], check=False)
        return collected(process.communicate()[1]), of_object(out, Path(shim).name)


def models(python, settings, paddings):
    """Instructions of the loop."""
    loops = []
    for padding in paddings:
        lengths = []
        for scale in ("0.02", "0.12"):
            done = subprocess.run(
                [*command("/dev/null"), python, HERE / "python/models.py", scale],
                env=environment(PADDING="x" * padding, **settings),
                capture_output=True,
                text=True,
            )
            lengths.append(collected(done.stderr))
        loops.append(lengths[1] - lengths[0])
    return statistics.median(loops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis", metavar="SHIM")
    parser.add_argument("--models", nargs=2, metavar=("PYTHON", "HOOK"))
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--paddings", default="0,1000,2000")
    args = parser.parse_args()
    if args.redis:
        whole, without = redis(args.redis, "name=x", args.requests)
        _, profiled = redis(args.redis, "profile=/nowhere/x,window=off", args.requests)
        print(f"redis: {whole / 1e6:.1f} M, of which the shim {without / 1e6:.1f} M, with a profile {profiled / 1e6:.1f} M: "
              f"{(profiled - without) / whole:+.1%}")
    if args.models:
        python, hook = args.models
        paddings = [int(n) for n in args.paddings.split(",")]
        ours = {"LD_PRELOAD": hook, "HAKMEM_DOMAINS": "all"}
        alone = models(python, {}, paddings)
        for name, more in (("--all", {}), ("--all --profile", {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_WINDOW": "off"})):
            found = models(python, ours | more, paddings)
            print(f"models: {alone / 1e6:.1f} M, with {name} {found / 1e6:.1f} M: {found / alone - 1:+.1%}", flush=True)


if __name__ == "__main__":
    main()
