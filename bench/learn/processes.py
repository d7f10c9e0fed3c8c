#!/usr/bin/env python3
"""Runs whole programs without a learner, with one, again with the file of that run, and in mode fast: page faults, CPU
time, resident memory. Faults do not depend on what else the machine does; CPU time does, a little."""

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WAYS = ("without", "learn", "again", "fast")
C = {"paced": 30, "wave": 20, "lru": 8000, "queue": 60, "cli": 40, "burst": 6, "json": 600, "threads": 60}
LUA = {"server": 400, "game": 6000}
COLUMNS = ("faults", "cpu", "mib")


def text_of_c(count):
    """A source that takes a compiler some seconds."""
    return "\n".join(
        f"struct s{i} {{ int a[{i % 9 + 1}]; struct s{i} *next; }};\n"
        f"int f{i}(struct s{i} *s, int n) {{ int sum = {i}; for (; s && n; s = s->next, n--)"
        f" for (int k = 0; k < {i % 9 + 1}; k++) sum += s->a[k] * (sum % {i + 3} ? n : k); return sum; }}"
        for i in range(count)
    )


class Runner:
    def __init__(self, args, folder):
        self.build, self.folder, self.short = args.build.resolve(), folder, args.short
        self.shim = self.build / "bindings/preload/libhakmem-preload.so"
        self.results = {}

    def size(self, n):
        return str(max(1, n // 10) if self.short else n)

    def programs(self):
        """Name, how it is run, and what starts it."""
        yield from ((name, "shim", [str(self.compiled(name)), self.size(n)]) for name, n in C.items())
        if shutil.which("redis-server") and shutil.which("redis-benchmark"):
            yield "redis", "redis", []
        for runtime in ("hakluajit", "haklua5.4"):
            launcher = self.build / "bindings/lua" / runtime
            if not launcher.exists():
                continue
            for name, n in LUA.items():
                yield f"{name}, {runtime}", "lua", [str(launcher), str(HERE / "programs" / f"{name}.lua"), self.size(n)]
            example = str(ROOT / "examples/lua/learn.lua")
            yield f"example, {runtime}", "lua", [str(launcher), example, "150000" if self.short else "1500000"]
        graph = ["/usr/bin/python3", str(HERE / "programs/graph.py"), self.size(12)]
        yield "graph", "shim", ["env", "PYTHONMALLOC=malloc", *graph]
        source = self.folder / "long.c"
        source.write_text(text_of_c(150 if self.short else 1200))
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
        yield "compiler", "shim", [cc1, "-quiet", "-O2", str(source), "-o", "/dev/null"]

    def compiled(self, name):
        program = self.folder / name
        subprocess.run(["gcc", "-O2", "-fno-builtin", "-pthread", "-o", program, HERE / "programs" / f"{name}.c"], check=True)
        return program

    def command(self, how, words, way, file):
        """The command and its environment."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HAKMEM")}
        if how == "lua":
            option = {"without": [], "fast": ["--hak-mode=fast"]}.get(way, [f"--hak-learn={file}"])
            return [words[0], *option, *words[1:]], environment
        setting = {"without": "", "fast": "mode=fast"}.get(way, f"learn={file}")
        if how == "redis":
            words = ["redis-server", "--save", "", "--port", "0", "--unixsocket", str(self.folder / "redis"), "--loglevel", "warning"]
        preload = [f"LD_PRELOAD={self.shim}", *([f"HAKMEM={setting}"] if setting else [])]
        if words[0] == "env":
            return ["env", *preload, *words[1:]], environment
        return ["env", *preload, *words], environment

    def drive(self, process):
        """Rounds of redis-benchmark, then the server's end."""
        socket = str(self.folder / "redis")
        for _ in range(400):
            if os.path.exists(socket):
                break
            time.sleep(0.05)
        for _ in range(1 if self.short else 6):
            subprocess.run(
                ["redis-benchmark", "-s", socket, "-q", "-t", "set,lpush,lrange_100,mset", "-n", "20000", "-r", "100000", "-d", "200"],
                stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            time.sleep(1)
        subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], stderr=subprocess.DEVNULL, check=False)

    def once(self, how, words, way, file):
        command, environment = self.command(how, words, way, file)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, cwd=self.folder)
        if how == "redis":
            self.drive(process)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"learn: {command}: status {status}")
        return {"faults": used.ru_minflt, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}

    def measure(self, name, how, words, repeats):
        runs = {way: [] for way in WAYS}
        for i in range(repeats):
            file = self.folder / f"{name.replace(', ', '-')}-{i}.policy"
            for way in WAYS:
                runs[way].append(self.once(how, words, way, file))
            kept = file.read_text() if file.exists() else ""
        row = {way: {c: statistics.median(r[c] for r in runs[way]) for c in COLUMNS} for way in WAYS}
        row["policy"] = [line for line in kept.splitlines() if not line.startswith("#")]
        row["log"] = [line for line in kept.splitlines() if line.startswith("#")]
        return row


def table(results):
    yield "| program | faults without | learn | again | `fast` | CPU without, s | learn | again | MiB without | learn |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, row in results.items():
        base = row["without"]
        percent = {(w, c): 100 * (row[w][c] / base[c] - 1) for w in WAYS for c in COLUMNS if base[c]}
        shown = [f"{base['faults']:,.0f}", *(f"{percent[w, 'faults']:+.0f} %" for w in WAYS[1:])]
        shown += [f"{base['cpu']:.2f}", *(f"{percent[w, 'cpu']:+.0f} %" for w in ("learn", "again"))]
        shown += [f"{base['mib']:.0f}", f"{percent['learn', 'mib']:+.0f} %"]
        yield f"| {name} | " + " | ".join(shown) + " |"


def verdict(results):
    """How many gain, and which lose."""
    for way in ("learn", "again"):
        ratio = {n: r[way]["faults"] / r["without"]["faults"] for n, r in results.items()}
        gain = [n for n, x in ratio.items() if x <= 0.85]
        lose = [n for n, x in ratio.items() if x > 1.05]
        yield f"{way}: 15 % fewer faults in {len(gain)} of {len(ratio)}; more than 5 % above: {', '.join(lose) or 'none'}."


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="a build with the shim and the launchers")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="a tenth of the work, to see that all run")
    parser.add_argument("--json", type=Path, help="write what was measured")
    parser.add_argument("names", nargs="*", help="programs whose names begin so; default all")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(args, Path(folder))
        for name, how, words in runner.programs():
            if args.names and not any(name.startswith(n) for n in args.names):
                continue
            runner.results[name] = runner.measure(name, how, words, args.repeat)
            print(list(table({name: runner.results[name]}))[-1], flush=True)
            for line in runner.results[name]["policy"]:
                print("   ", line)
    print(*table(runner.results), "", *verdict(runner.results), f"{datetime.date.today()}", sep="\n")
    if args.json:
        args.json.write_text(json.dumps(runner.results, indent=1))


if __name__ == "__main__":
    main()
