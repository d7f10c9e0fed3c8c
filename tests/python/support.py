"""Programs under hakmem, for the tests. The interpreter under test is the one that runs them."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import hakmem
from hakmem import _launch

HERE = Path(__file__).parent
FREE_THREADED = bool(__import__("sysconfig").get_config_var("Py_GIL_DISABLED"))
OBJ = "wrapped" if FREE_THREADED else "replaced"
needs_objects = unittest.skipIf(FREE_THREADED, "a free-threaded build keeps objects in its own heap")


def plain_environment(**extra):
    """The user's environment without what changes allocations. Compiled modules are written, since Python starts
    hundreds of times."""
    changed = ("LD_PRELOAD", "PYTHONMALLOC", "PYTHONDONTWRITEBYTECODE")
    environment = {k: v for k, v in os.environ.items() if k not in changed and not k.startswith("HAKMEM_")}
    environment.update(extra)
    return environment


def preloaded(**options):
    """An environment as `python -m hakmem env` makes it."""
    return plain_environment(**_launch.settings(**options))


class ProgramCase(unittest.TestCase):
    """Each test has a folder of its own."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def python(self, *arguments, check=True, timeout=120, env=None, **options):
        done = subprocess.run(
            [sys.executable, *arguments],
            env=env or plain_environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
            **options,
        )
        if check and done.returncode != 0:
            self.fail(f"status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def hakmem(self, *arguments, **options):
        return self.python("-m", "hakmem", *arguments, **options)

    def run_script(self, text, *options, arguments=(), **more):
        """`run` without a report, unless asked for."""
        quiet = () if "--report" in options else ("--report", "")
        return self.hakmem("run", *quiet, *options, self.script(text), *arguments, **more)

    def run_code(self, text, **options):
        """Preloaded, and what the program prints as JSON."""
        env = options.pop("env", None) or preloaded(all_domains=options.pop("all_domains", True))
        return json.loads(self.python(self.script(text), env=env, **options).stdout)

    def reports(self, pattern="*.json"):
        return [hakmem.Snapshot.load(str(p)).parts for p in sorted(self.folder.glob(pattern))]


def empty_package(folder):
    """python -m empty WORD...: becomes another Python, and does nothing else."""
    (folder / "empty").mkdir()
    (folder / "empty" / "__init__.py").write_text("")
    (folder / "empty" / "__main__.py").write_text(
        "import os, sys; os.execve(sys.executable, [sys.executable, '-c', 'pass'], os.environ)"
    )


def needs_module(name):
    try:
        __import__(name)
    except ImportError:
        return unittest.skip(f"{name} is not installed for this Python")
    return lambda test: test


def needs_version(*version):
    return unittest.skipIf(sys.version_info < version, f"needs Python {'.'.join(map(str, version))}")


def as_this_python():
    """Options of cc for a program with the loader and the C library of this Python, which may be newer than
    those of the machine."""
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "/" in line}
    loader = next(file for file in files if os.path.basename(file).startswith("ld-"))
    library = next(file for file in files if os.path.basename(file).startswith(("libc.so", "libc-")))
    options = "dynamic-linker=" + loader, "rpath=" + os.path.dirname(library), "disable-new-dtags"
    return [f"-Wl,--{option}" for option in (*options, "allow-shlib-undefined")]


@functools.cache
def compiler():
    import shutil

    return shutil.which("cc")
