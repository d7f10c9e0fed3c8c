#!/usr/bin/env python3
"""strangers.py PAGE WAY FOLDER: follows the lines of a page, and nothing else, in an emptied FOLDER.

```LANGUAGE WAY... FILE   is written to FILE, whose name has a dot
```sh WAY...              is run; the blocks of a way are one script, in the order of the page
```output WAY...          is what the script prints

The environment has PREFIX, where hakmem is installed, and HAKMEM_SOURCE, the folder of its sources. Exit status 77: skipped.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)[ \t]+([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
# The program that a way begins with, where a machine may be without it.
NEEDED = {"rust": "cargo", "luarocks": "luarocks", "conan": "conan"}


def main():
    page, way, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    program = NEEDED.get(way)
    if program and not shutil.which(program):
        print(f"{way}: skipped: no program {program} on this machine")
        return 77
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script, output = "set -euo pipefail\n", ""
    for language, words, text in BLOCK.findall(page.read_text()):
        words = words.split()
        file = words.pop() if re.search(r"[./]", words[-1]) else None
        if way not in words:
            continue
        if file:
            # Where the script is by then there may be a folder that it needs to be empty.
            script += f"mkdir -p {folder / Path(file).parent}\ncat >{folder / file} <<'--END--'\n{text}--END--\n"
        elif language == "output":
            output += text
        else:
            script += text
    if "\n" not in script[20:]:
        print(f"{way}: not on {page}")
        return 1
    # Nothing of this machine's settings leads to hakmem.
    unwanted = "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "LUA_PATH", "LUA_CPATH", "CARGO_TARGET_DIR", "PYTHONPATH"
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if done.returncode or done.stdout != output:
        print(f"{way}: exit status {done.returncode}; the page says that it prints\n{output}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
