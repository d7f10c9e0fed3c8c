#!/usr/bin/env python3
"""The file for test_speedscope.mjs, and its run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import example

node = shutil.which("node")
packages = [os.environ["PLAYWRIGHT"], os.environ["SPEEDSCOPE"]]
if not node or not all(Path(package).exists() for package in packages):
    print("no node, or no playwright or speedscope: the registry of npm was out of reach at configure time")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    report, written = Path(folder, "a.json"), Path(folder, "a.speedscope.json")
    report.write_text(json.dumps(example.report()))
    subprocess.run([os.environ["HAKMEM_COMMAND"], "speedscope", "-o", written, report], check=True)
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run([node, script, *packages, written, Path(folder, "load.js")], check=False)
sys.exit(done.returncode)
