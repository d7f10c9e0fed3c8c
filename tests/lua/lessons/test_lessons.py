#!/usr/bin/env python3
"""What is learnt of a runtime is kept, and what does not fit is learnt anew.

test_lessons.py PROGRAM OTHER LAUNCHER KNOWN: PROGRAM is lessons.c with the runtime, OTHER the same with another one,
LAUNCHER the one for the runtime; KNOWN is known.c."""
import importlib.machinery
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

program, other, launcher, known = sys.argv[1:]
scripts = Path(__file__).resolve().parents[3] / "scripts"
loader = importlib.machinery.SourceFileLoader("lua_lessons", str(scripts / "lua-lessons"))
lua_lessons = importlib.util.module_from_spec(importlib.util.spec_from_loader("lua_lessons", loader))
sys.dont_write_bytecode = True
loader.exec_module(lua_lessons)


def learn(folder, of=program):
    done = subprocess.run([of, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, (folder, done)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def instructions(command, **environment):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                          capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def same_as_known(folder):
    """Returns whether the package has the runtime; fails if what it has is not what is learnt now."""
    text = Path(known).read_text()
    found = False
    for lua, build_id, name, words in lua_lessons.lessons_of(folder):
        part = text.partition(f"#if LUA_VERSION_NUM == {lua}\n")[2].partition("#endif")[0]
        entry = re.search(rf'"{build_id}", {name},\s+WORDS\((.*?)\)', part, re.S)
        if entry:
            found = True
            assert tuple(map(int, re.findall(r"\d+", entry[1]))) == words, \
                f"{name} of {build_id} is learnt otherwise by now: run scripts/lua-lessons"
    return found


def test_used(folder):
    if not shutil.which("valgrind"):
        return
    first = instructions([program, str(folder / "used")])
    second = instructions([program, str(folder / "used")])
    assert second < first / 5, (first, second)


def test_start(folder, is_known):
    """A script of nothing, with labels and with a profile, on a runtime of the package's."""
    if not shutil.which("valgrind") or not is_known:
        return
    places = {"XDG_CACHE_HOME": "/dev/null"}
    plain, labelled = (instructions([launcher, f"--hak-labels={on}", "-e", ""], **places) for on in ("off", "on"))
    profiled = instructions([launcher, f"--hak-profile={folder / 'profile'}", "-e", ""], **places)
    assert labelled < plain + 100_000, (plain, labelled)
    assert profiled < plain + 2_000_000, (plain, profiled)


def test_damaged(folder, good):
    """Each file with a bit turned, cut, lengthened, empty, or that of another runtime or lesson is replaced."""
    at = folder / "damaged"
    learn(at)
    assert files(at) == good
    for name, content in good.items():
        bad = [content[:i] + bytes([content[i] ^ 16]) + content[i + 1:]
               for i in (0, 8, 12, 16, 20, 24, 40, 70, 97, 104, len(content) - 1)]
        bad += [content[:-4], content[:50], b"", content + b"\0", bytes(len(content))]
        bad += [more for to, more in good.items() if to != name]
        for data in bad:
            (at / name).write_bytes(data)
            learn(at)
            assert files(at) == good, name
    learn(folder / "other", other)
    others = files(folder / "other")
    for name in good:
        twin = [data for to, data in others.items() if to.split("-")[3] == name.split("-")[3]]
        if twin:
            (at / name).write_bytes(twin[0])
            learn(at)
            assert files(at) == good, name


def test_unwritable(folder):
    (folder / "file").write_text("")
    for place in ("/dev/null/folder", folder / "file", folder / "file/in", folder / "none/in/here", "/proc/x", ""):
        learn(place)
    assert not (folder / "none").exists() or not (folder / "none/in/here").exists()
    (folder / "made").mkdir()
    learn(folder / "made/cache/hakmem")
    assert stat.S_IMODE((folder / "made/cache/hakmem").stat().st_mode) == 0o700


def test_at_once(folder, good):
    running = [subprocess.Popen([program, str(folder / "once")]) for _ in range(8)]
    assert [one.wait() for one in running] == [0] * 8
    assert files(folder / "once") == good


def test_foreign(folder, good):
    """A file that others may write to is not believed: nor is it replaced by one that they may not."""
    at = folder / "foreign"
    learn(at)
    name = next(iter(good))
    (at / name).chmod(0o666)
    learn(at)
    assert files(at)[name] == good[name]


def test_launcher(folder, is_known):
    """The user's folder is for runtimes that the package does not have."""
    def run(command=launcher, user=None, **places):
        environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
        for place in places.values():
            Path(place).mkdir(exist_ok=True)
            os.chmod(place, 0o777)
        done = subprocess.run([command, "-e", "print(1)"], env={**environment, **places}, capture_output=True,
                              text=True, check=False, cwd=folder, user=user)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", ""), done

    run()
    run(XDG_CACHE_HOME=str(folder / "xdg"), HOME=str(folder / "home"))
    assert (folder / "xdg/hakmem").exists() != is_known and not (folder / "home/.cache").exists()
    run(HOME=str(folder / "home"))
    assert (folder / "home/.cache/hakmem").exists() != is_known
    run(XDG_CACHE_HOME="relative", HOME=str(folder / "home"))
    assert not (folder / "relative/hakmem").exists()
    if os.geteuid() == 0 and not is_known:
        os.chmod(folder, 0o755)
        for mode, writes in ((0o755, True), (0o4755, False)):
            copy = shutil.copy(launcher, folder / "copy")
            os.chmod(copy, mode)
            place = folder / f"user{mode}"
            run(command=copy, user=65534, XDG_CACHE_HOME=str(place))
            assert (place / "hakmem").exists() == writes, oct(mode)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    learn(folder / "good")
    good = files(folder / "good")
    assert len(good) >= 3, good.keys()
    is_known = same_as_known(folder / "good")
    test_used(folder)
    test_start(folder, is_known)
    test_damaged(folder, good)
    test_unwritable(folder)
    test_at_once(folder, good)
    test_foreign(folder, good)
    test_launcher(folder, is_known)
