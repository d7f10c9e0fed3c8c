"""Prints "name path" for the CPythons of this machine, one a line; "-" where a version is missing."""

import glob
import os
import subprocess
import sys

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.13t")
PLACES = ("/usr/bin/python{0}", "/usr/local/bin/python{0}", "~/.pyenv/versions/{0}.*/bin/python")
QUESTION = "import sys, sysconfig as s; print(s.get_config_var('LDVERSION'), s.get_config_var('prefix'))"


def main():
    for version in VERSIONS:
        found = {}
        for place in PLACES:
            for path in sorted(glob.glob(os.path.expanduser(place.format(version)))):
                answer = subprocess.run([path, "-c", QUESTION], capture_output=True, text=True)
                if answer.returncode == 0:
                    abi, prefix = answer.stdout.split()
                    origin = "pyenv" if "pyenv" in prefix else "system"
                    found.setdefault(f"{abi}-{origin}", path)
        for name, path in (found or {version: "-"}).items():
            print(name, path)


if __name__ == "__main__":
    sys.exit(main())
