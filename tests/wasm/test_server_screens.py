#!/usr/bin/env python3
"""test_server_screens.py [FOLDER]: the first screen of the server's page, by tests/report/screens.mjs; pictures go to
FOLDER."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from server_process import Server

SCREENS = Path(__file__).resolve().parents[1] / "report/screens.mjs"


def main():
    node, playwright = shutil.which("node"), os.environ["PLAYWRIGHT"]
    if not node or not Path(playwright).exists():
        print("no node, or no playwright: the registry of npm was out of reach at configure time")
        return 77
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        for tenant in "alice", "bob", "a-customer-with-a-very-long-name":
            server.run(tenant, "JSON.stringify([...Array(1000).keys()])")
        server.run("mallory", "let a = []; for (;;) a.push('x'.repeat(100000))")
        page = f"server=http://127.0.0.1:{server.stats_port}/=#tenants tr"
        pictures = sys.argv[1] if len(sys.argv) > 1 else folder
        return subprocess.run([node, SCREENS, playwright, pictures, page], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
