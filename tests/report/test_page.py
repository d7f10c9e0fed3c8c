#!/usr/bin/env python3
"""The files for test_page.mjs, and its run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import example

node = shutil.which("node")
playwright = os.environ["PLAYWRIGHT"]
if not node or not Path(playwright).exists():
    print("no node, or no playwright: the registry of npm was out of reach at configure time")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    report = example.report()
    before = example.report()
    before["contexts"][0]["stacks"][0]["live_bytes"] -= 1_000_000
    marked = example.report()
    for what in ("timeline", "decisions"):
        del marked["contexts"][0][what]
    marked["contexts"][0]["marks"] = [
        {"name": f"turn {i}", "at_ns": i * 10**9}
        | {"live_bytes": i << 20, "committed_bytes": i << 21, "resident_bytes": i << 22}
        for i in range(1, 5)
    ]
    # Rows of one stack, and verdicts on one of two contexts of the same name.
    twice = example.report()
    first, second = twice["contexts"][0], twice["contexts"][0] | {"name": 'lua "x"\n'}
    again = first["stacks"][0] | {"id": 9, "thread": "t"}
    first = first | {"verdicts": [], "stacks": [*first["stacks"], again]}
    second["stacks"] = [s | {"label": s["label"] + " two"} for s in second["stacks"]]
    twice["contexts"] = [first, second]
    once = example.report()
    once["contexts"] = json.loads(json.dumps([first, second]))
    once["contexts"][0]["stacks"][3]["live_bytes"] -= 1000
    for name, value in (("twice", twice), ("once", once)):
        Path(folder, f"{name}.json").write_text(json.dumps(value))
    full = example.report()
    full["process"]["command"] = ["/opt/lua/bin/haklua5.4", "--hak-labels=on", "/srv/check", *(f"/srv/{n}.lua" for n in range(200))]
    full["contexts"][0]["profile"]["dropped_stacks"] = 233
    Path(folder, "full.json").write_text(json.dumps(full))
    grown = example.resident()
    grown["memory"]["parts"][0]["bytes"] += 1 << 20
    grown["contexts"][0]["stacks"][0]["live_bytes"] += 1000
    for name, value in (("resident", example.resident()), ("grown", grown)):
        Path(folder, f"{name}.json").write_text(json.dumps(value))
    bare = example.report() | {"process": {}, "memory": {}}
    less = before | {"process": {}, "memory": {}}
    for name, value in (("bare", bare), ("less", less)):
        Path(folder, f"{name}.json").write_text(json.dumps(value))
    for name, value in (("a", report), ("b", before), ("marked", marked), ("many", example.many(50_000))):
        Path(folder, f"{name}.json").write_text(json.dumps(value))
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run([node, script, playwright, os.environ["HAKMEM_COMMAND"], folder], check=False)
    if len(sys.argv) > 1:
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, sys.argv[1])
sys.exit(done.returncode)
