#!/usr/bin/env python3
"""test_screens.py [FOLDER]: the first screens of the pages that hakmem makes, by screens.mjs; pictures go to FOLDER.

LAUNCHER (haklua5.4) and HAKMEM_PACKAGE (the folder of the Python package) add pages of programs that ran just now.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import example

HERE = Path(__file__).resolve().parent
COMMAND = os.environ["HAKMEM_COMMAND"]
FLAME = "#flame svg rect"
LUA = """
local kept = {}
local function parse(line) local words = {} for word in line:gmatch('%a+') do words[#words + 1] = word end return words end
for i = 1, 20000 do kept[i] = parse('line ' .. i .. ' of a file') end
"""
PYTHON = "kept = [{'n': str(i), 'of': [i] * 20} for i in range(20000)]\n"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False, **options)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")


class Pages:
    def __init__(self, folder):
        self.folder, self.all = folder, []

    def file(self, name, report):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(report))
        return path

    def add(self, name, first, *reports):
        page = self.folder / f"{name}.html"
        run(COMMAND, "html", "-o", page, *reports)
        self.all.append(f"{name}=file://{page}={first}")


def made(pages):
    """Pages of reports as they may be."""
    report, grown = example.report(), example.report()
    grown["contexts"][0]["stacks"][0]["live_bytes"] += 4_000_000
    a, b = pages.file("a", report), pages.file("b", grown)
    pages.add("report", ".verdict", a)
    pages.add("diff", FLAME, b, a)
    pages.add("same", "#flame p", a, a)
    pages.add("windows", FLAME, pages.file("windows", example.windows()))
    pages.add("many", FLAME, pages.file("many_rows", example.many(20_000)))

    full = example.report()
    full["process"]["command"] = ["/opt/lua/bin/haklua5.4", "--hak-labels=on", "/srv/check", *(f"/srv/{n}.lua" for n in range(200))]
    full["process"]["runtime"] = {"name": "python", "version": "3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0]"}
    full["contexts"][0]["profile"]["dropped_stacks"] = 233
    pages.add("full", FLAME, pages.file("missing", full))

    labels = example.report()
    for context in labels["contexts"]:
        for part in "stacks", "frames", "profile", "verdicts":
            context.pop(part, None)
    pages.add("labels", "#labels tbody tr", pages.file("without_stacks", labels))

    tenants = example.report()
    tenants["contexts"] = [json.loads(json.dumps(tenants["contexts"][0])) | {"name": f"tenant-{n}-of-a-customer"} for n in range(40)]
    for context in tenants["contexts"]:
        context.pop("verdicts", None)
        context["profile"]["dropped_stacks"] = 0
    pages.add("tenants", FLAME, pages.file("forty", tenants))


def of_programs(pages):
    """Pages of programs that run now; none of a binding that was not built."""
    if launcher := os.environ.get("LAUNCHER"):
        script, report = pages.folder / "parser.lua", pages.folder / "lua_report.json"
        script.write_text(LUA)
        run(launcher, "--hak-labels=on", f"--hak-profile={report},4K", script)
        pages.add("lua", FLAME, report)
    if package := os.environ.get("HAKMEM_PACKAGE"):
        script, report = pages.folder / "records.py", pages.folder / "python_report.json"
        script.write_text(PYTHON)
        environment = {**os.environ, "PYTHONPATH": package}
        run(os.environ["PYTHON"], "-m", "hakmem", "run", "--all", "--labels", "native", "--profile=16K", "--report", report, script, env=environment)
        pages.add("python", FLAME, report)


def main():
    node, playwright = shutil.which("node"), os.environ["PLAYWRIGHT"]
    if not node or not Path(playwright).exists():
        print("no node, or no playwright: the registry of npm was out of reach at configure time")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        pages = Pages(Path(folder))
        made(pages)
        of_programs(pages)
        for picture in sorted((HERE.parents[1] / "docs").rglob("*.svg")):
            pages.all.append(f"{picture.stem}=file://{picture}=svg")
        pictures = sys.argv[1] if len(sys.argv) > 1 else folder
        return subprocess.run([node, HERE / "screens.mjs", playwright, pictures, *pages.all], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
