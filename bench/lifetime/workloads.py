"""The programs, and how their events are recorded."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's has the packages
LUA_SOURCES = ("/usr/share/lua/5.4/pl", "/usr/share/lua/5.4/ldoc", "/usr/share/lua/5.1/luacheck")
# name: what it is, language of the sites
PROGRAMS = {
    "lua-server": "API server with caches (dkjson)",
    "lua-store": "store of JSON documents (dkjson)",
    "lua-check": "luacheck for an editor",
    "lua-compile": "Lua's compiler, a cache of scripts",
    "lua-trees": "binary trees",
    "python-web": "Flask, sessions and a cache",
    "python-orm": "SQLAlchemy over sqlite",
    "python-service": "events in JSON, profiles that stay",
    "python-index": "parses and compiles modules",
    "sqlite": "the shell of sqlite3, tables in memory",
    "redis": "redis-server, a cache and a queue",
}
SEEDS = {"train": 1, "test": 2}


def sources():
    return sorted(str(p) for folder in LUA_SOURCES for p in Path(folder).glob("*.lua"))


def command_of(name, seed, recorder):
    """The command, its environment, its input."""
    language, _, program = name.partition("-")
    preload = {"LD_PRELOAD": str(recorder)}
    if language == "lua":
        paths = f"{HERE}/?.lua;/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
        more = preload | {"LUA_CPATH": f"{recorder.parent}/?.so;;", "LUA_PATH": paths}
        files = sources() if program in ("check", "compile") else []
        return ["lua5.4", f"{HERE}/programs/{program}.lua", seed, *files], more, None
    script = f"{HERE}/programs/{program or name}.py"
    if language == "python":
        more = preload | {"PYTHONPATH": str(recorder.parent), "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
        return [PYTHON, "-B", script, seed], more, None
    if name == "sqlite":
        text = subprocess.run([PYTHON, "-B", script, seed], capture_output=True, check=True).stdout
        return ["sqlite3", ":memory:"], preload, text
    return [PYTHON, "-B", script, seed], {"HAK_SERVER_PRELOAD": str(recorder)}, None


def environment(more):
    return {**os.environ, **more}


def record(build, folder, name, seed):
    """The events of a run, made once."""
    path = folder / f"{name}-{seed}.events"
    if path.exists():
        return path
    command, more, text = command_of(name, str(seed), build.resolve() / "lifetime-record.so")
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    done = subprocess.run(
        command,
        env=environment({"HAK_RECORD": str(unfinished), **more}),
        input=text,
        capture_output=True,
        check=False,
    )
    if done.returncode or not unfinished.exists():
        sys.exit(f"lifetime: {name} could not be recorded\n{done.stderr.decode(errors='replace')}")
    unfinished.rename(path)
    return path
