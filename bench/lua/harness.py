"""What run.py and states.py share: the machine, the hosts of a build, tables, the result file."""

import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINES = {"luajit": "LuaJIT", "lua5.4": "PUC Lua 5.4"}


def fail(text):
    sys.exit(f"{Path(sys.argv[0]).name}: {text}")


def first_line(path, prefix=""):
    try:
        with open(path) as f:
            for line in f:
                if line.startswith(prefix):
                    return line[len(prefix) :].strip(" \t:\n")
    except OSError:
        pass
    return "unknown"


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def selected(text, allowed, what):
    """The names of a comma-separated list, checked; None = all."""
    if text is None:
        return list(allowed)
    names = text.split(",")
    for name in names:
        if name not in allowed:
            fail(f"unknown {what} '{name}'; allowed are {', '.join(allowed)}")
    return names


def built(build, name):
    """A program of the build tree, None when it was left out."""
    path = build / name
    return path if path.exists() else None


def pin(cpu):
    allowed = sorted(os.sched_getaffinity(0))
    if cpu is None:
        cpu = allowed[-1]
    if cpu not in allowed:
        fail(f"CPU {cpu} is not available; allowed are {', '.join(map(str, allowed))}")
    os.sched_setaffinity(0, {cpu})
    return cpu


def description(cpu, engines, build):
    versions = {
        "revision": output("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
        "libc": " ".join(platform.libc_ver()),
    }
    for engine in engines:
        for allocator in ("builtin", "hak", "mimalloc"):
            host = built(build, f"lua_host_{engine}_{allocator}")
            if host:
                versions[engine], versions[allocator] = output(str(host), "--version").splitlines()
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join(["bench/lua/" + Path(sys.argv[0]).name] + sys.argv[1:]),
        "machine": {
            "cpu": first_line("/proc/cpuinfo", "model name"),
            "cpus": os.cpu_count(),
            "pinned_to": cpu,
            "kernel": platform.release(),
            "thp": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        },
        "versions": versions,
    }


def caption(about):
    machine, versions = about["machine"], about["versions"]
    thp = machine["thp"].partition("[")[2].partition("]")[0]
    engines = ", ".join(versions[e] for e in ENGINES if e in versions)
    return (
        f"`{about['command']}`, {about['date'][:10]}, {versions.get('hak')} "
        f"({versions['revision']}), {engines}, "
        f"{machine['cpu']}, Linux {machine['kernel'].split('-')[0]}, THP {thp}."
    )


def markdown_table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def plain_table(header, rows):
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    lines = []
    for row in [header] + rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def geomean(values):
    return statistics.geometric_mean(values)


def write_json(path, about, **results):
    with open(path, "w") as f:
        json.dump({"version": 1, **about, **results}, f, indent=1)
        f.write("\n")


def write_markdown(path, text):
    """Puts text between the marks of this tool in the file, which is made when it is not there."""
    tool = Path(sys.argv[0]).name
    begin, end = f"<!-- begin {tool} -->\n", f"<!-- end {tool} -->\n"
    old = path.read_text() if path.exists() else begin + end
    before, found, rest = old.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        fail(f"{path} has no lines '{begin.strip()}' and '{end.strip()}' to put the tables between")
    path.write_text(before + begin + text + "\n" + end + after)


class Progress:
    """One line that counts up, on a terminal only."""

    def __init__(self, total):
        self.done, self.total, self.on = 0, total, sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        if self.on:
            print(f"\r{self.done}/{self.total} {what:<50}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.on:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
