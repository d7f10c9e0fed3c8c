"""The workloads and the fixed policies of the evaluation."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LUA = [f"lua-{p}" for p in ("json", "lru", "trees")]
PYTHON = [f"python-{p}" for p in ("json_loads", "xml_tree")]
TOOLS = {
    "cc": ["{cc1}", "-O2", "-quiet", "-o", "/dev/null", "{source}"],
    "sqlite3": ["sqlite3", ":memory:", "{sql}"],
    "jq": ["jq", "-c", "[range(60000)|{id:.,name:\"n\\(.)\",tags:[.,.+1]}]|group_by(.id%7)|map(length)", "-n"],
}
# Programs that live as long as a request: each of their runs has a context of its own.
STATES = {
    "lua-state": ["lua5.4", "-e", "local t = {} for i = 1, 200 do t[i] = {i, tostring(i)} end"],
    "lua-request": ["lua5.4", "-e", "local t = {} for i = 1, 5000 do t[i] = {i, tostring(i), s = ('x'):rep(i % 100)} end"],
}
STATE_POLICIES = {"default": "", "fast": "mode fast", "packed none": "packed_bytes none"}
# Generated ones: trace.c.
MADE = [
    "mix10k", "mix500k", "mixed-big", "waves20", "waves100", "waves200", "grow15", "grow400", "buffers-steps", "fragments", "requests", "queue",
]  # fmt: skip
RECORDED = [*LUA, *PYTHON, "cc", "sqlite3", "jq"]
# Rules and constants of learners come from the other ones: these only report.
HELD_OUT = [*MADE, *RECORDED][1::2]
# The work changes in the middle.
CHANGES = {
    "waves20 to waves100": ("waves20", "waves100"),
    "waves100 to waves20": ("waves100", "waves20"),
    "mix10k to waves200": ("mix10k", "waves200"),
}
EVENTS_A_WINDOW, EVENTS_MOST = 100000, 800000
SQL = (
    "create table t(a integer primary key, b text, c real); with recursive n(i) as (select 1 union all select i+1"
    " from n where i < 60000) insert into t select i, 'name ' || (i * 7919 % 60000), i / 7.0 from n;"
    " create index x on t(b); select count(*), sum(c) from t where b like 'name 1%';"
    " select b, count(*) from t group by substr(b, 1, 7) order by 2 desc limit 5;"
)

# name: statements of a policy. Each number by itself over its scale, then the modes as a whole.
POLICIES = {
    "default": "",
    "minimal": "mode minimal",
    "fast": "mode fast",
    "lean": "mode lean",
    "magazine 128": "magazine 128",
    "magazine_most 8K": "magazine_most 8K",
    "big_cache 256M": "big_cache 256M",
    "big_cache 64M": "big_cache 64M",
    "packed_bytes 256K": "packed_bytes 256K",
    "units_ahead 64": "units_ahead 64",
    "populate none": "populate_from none",
    "populate 2": "populate_from 2",
    "purge x10": "",
    "purge x0.1": "",
    "retained 64M": "retained_bytes 64M",
    "retained 128M": "retained_bytes 128M",
    "retained 256M": "retained_bytes 256M",
    "huge_from 1M": "huge_from 1M",
    "expected 400M": "expected_bytes 400M",
    "room 100": "room 100 label trace",
}
# These change what the space does with pages, not the instructions of a block.
OF_PAGES = ("retained", "huge_from", "expected", "populate", "purge")
# purge_ns, in windows.
PURGE = {"fast": 10, "purge x10": 10, "purge x0.1": 0.1}
# The policies of the modes that a learner chooses among.
MODES = {"minimal": "minimal", "lean": "lean", "balanced": "default", "fast": "fast"}
ELO = ["default", "minimal", "fast", "lean", "retained 128M", "huge_from 1M"]


def policy_file(folder, name, window_ns):
    text = {**POLICIES, **STATE_POLICIES}[name]
    head, hints = (text, "") if not text.startswith("room") else ("", text)
    purge = f"purge_ns {int(window_ns * PURGE.get(name, 1))}"
    path = folder / f"{name.replace(' ', '-')}-{window_ns}.policy"
    text = "\n".join(["hakmem-policy 1", *filter(None, [head]), purge, *filter(None, [hints])]) + "\n"
    # Jobs side by side want the same one: none of them may see half of it.
    fd, part = tempfile.mkstemp(dir=folder)
    with open(fd, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(part, path)
    return path


def saved_policy(file, window_ns):
    """What a learner saved: a mode that it chose has its own period."""
    lines = file.read_text().splitlines()
    purge = f"purge_ns {window_ns * (PURGE['fast'] if 'mode fast' in lines else 1)}"
    file.write_text("\n".join([line for line in lines if not line.startswith("purge_ns")] + [purge]) + "\n")
    return file


def command_of(name):
    if name in STATES:
        return STATES[name]
    if name.startswith("lua-"):
        return ["lua5.4", str(ROOT / f"bench/lua/programs/{name[4:]}.lua"), "0.3"]
    if name.startswith("python-"):
        return ["/usr/bin/python3", str(ROOT / f"bench/python/programs/{name[7:]}.py"), "0.2"]
    return TOOLS[name]


def record(build, folder, name):
    """The trace of a program, made once."""
    path = folder / f"{name}.trace"
    if path.exists():
        return path
    values = {"{sql}": SQL}
    if name == "cc":
        source = str(folder / "replay.i")
        subprocess.run(["cc", "-E", "-O2", str(HERE / "replay.c"), f"-I{ROOT}/core/include", "-o", source], check=True)
        asked = subprocess.run(["cc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
        values |= {"{source}": source, "{cc1}": asked.stdout.strip()}
    command = [values.get(part, part) for part in command_of(name)]
    env = {
        **os.environ,
        "LD_PRELOAD": str(build / "learn-record.so"),
        "HAK_RECORD": str(path),
        "HAK_RECORD_MOST": str(EVENTS_MOST),
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False)
    if done.returncode or not path.exists():
        sys.exit(f"learn: {name} could not be recorded")
    return path
