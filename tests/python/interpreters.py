"""interpreters.py [INTERPRETER...]: prints "name path" for the CPythons of this machine and for these, one a
line; "-" where a version is missing."""

import glob
import os
import shutil
import subprocess
import sys

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t")
PLACES = ("/usr/bin/python{0}", "/usr/local/bin/python{0}", "~/.pyenv/versions/{1}/bin/python")
QUESTION = "import sys, sysconfig as s; print(s.get_config_var('LDVERSION'), s.get_config_var('prefix'))"


def ask(path):
    """ABI and prefix of an interpreter; None = it does not run here."""
    try:
        answer = subprocess.run([path, "-c", QUESTION], capture_output=True, text=True)
    except OSError:
        return None
    return answer.stdout.split() if answer.returncode == 0 else None


def main():
    for version in VERSIONS:
        found = {}
        # pyenv calls a free-threaded build 3.13.0t
        pyenv = version.rstrip("t") + (".*t" if version.endswith("t") else ".*[!t]")
        places = [os.path.expanduser(place.format(version, pyenv)) for place in PLACES]
        paths = [path for place in places for path in sorted(glob.glob(place))]
        paths += filter(None, [shutil.which(f"python{version}")])
        for path in [*paths, *sys.argv[1:]]:
            abi, prefix = ask(path) or ("", "")
            if abi.endswith("t") != version.endswith("t") or not abi.startswith(version):
                continue  # python3.13 may be either
            origin = "given" if path not in paths else "pyenv" if "pyenv" in prefix else "system"
            found.setdefault(f"{abi}-{origin}", path)
        for name, path in (found or {version: "-"}).items():
            print(name, path)


if __name__ == "__main__":
    sys.exit(main())
