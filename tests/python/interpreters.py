"""Prints "name path" for the CPythons of this machine, one a line; "-" where a version is missing."""

import glob
import os
import shutil
import subprocess
import sys

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.13t")
PLACES = ("/usr/bin/python{0}", "/usr/local/bin/python{0}", "~/.pyenv/versions/{1}/bin/python")
QUESTION = "import sys, sysconfig as s; print(s.get_config_var('LDVERSION'), s.get_config_var('prefix'))"


def main():
    for version in VERSIONS:
        found = {}
        # pyenv calls a free-threaded build 3.13.0t
        pyenv = version.rstrip("t") + (".*t" if version.endswith("t") else ".*[!t]")
        places = [os.path.expanduser(place.format(version, pyenv)) for place in PLACES]
        paths = [path for place in places for path in sorted(glob.glob(place))]
        paths += filter(None, [shutil.which(f"python{version}")])
        for path in paths:
            answer = subprocess.run([path, "-c", QUESTION], capture_output=True, text=True)
            if answer.returncode == 0:
                abi, prefix = answer.stdout.split()
                if abi.endswith("t") != version.endswith("t"):
                    continue  # python3.13 may be either
                origin = "pyenv" if "pyenv" in prefix else "system"
                found.setdefault(f"{abi}-{origin}", path)
        for name, path in (found or {version: "-"}).items():
            print(name, path)


if __name__ == "__main__":
    sys.exit(main())
