"""attributed.py: how much of the anonymous memory of small programs with C extensions is attributed to a line.

Run it with a Python that has hakmem, numpy, pandas, lxml and Pillow; what is not installed is left out. Anonymous
memory is RssAnon of the kernel when the program has built its data, which it keeps until the report. --beside: the
same by profiles, tracemalloc and memray. --rest: what the memory is that has no line."""

import os
import subprocess
import sys
import tempfile

import hakmem

PROGRAMS = {
    "sqlite": """
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t (a integer, b text)")
db.executemany("insert into t values (?, ?)", ((i, str(i) * 20) for i in range(600000)))
db.execute("create index i on t (b)")
""",
    "lxml": """
from lxml import etree
root = etree.Element("root")
for i in range(150000):
    etree.SubElement(root, "row", number=str(i)).text = "text of row " + str(i)
again = etree.fromstring(etree.tostring(root))
""",
    "Pillow": """
from PIL import Image, ImageFilter
images = [Image.new("RGB", (1600, 1200), (i, 2 * i, 3 * i)) for i in range(10)]
images += [image.resize((800, 600)).filter(ImageFilter.BLUR) for image in images]
""",
    "numpy": """
import numpy
arrays = [numpy.random.default_rng(i).normal(size=200000) for i in range(60)]
products = [a * b for a, b in zip(arrays, arrays[1:])]
words = numpy.array([str(i) for i in range(200000)])
""",
    "pandas": """
import numpy, pandas
frame = pandas.DataFrame({"key": numpy.arange(600000) % 1000, "value": numpy.arange(600000) / 7.0})
frame["name"] = frame["key"].map(lambda k: "name " + str(k))
groups = frame.groupby("name").agg({"value": ["mean", "sum"]})
joined = frame.merge(frame.drop_duplicates("key"), on="key")
""",
    "json": """
import json
data = json.loads(json.dumps([{"id": i, "tags": ["a", str(i)], "f": i / 3} for i in range(150000)]))
""",
}
END = """
import sys
with open("/proc/self/status") as status:
    print(*(line.split()[1] for line in status if line.startswith("RssAnon")))
"""


def measure(program, folder, *options):
    """MiB of anonymous memory; in per cent what hakmem holds of it, what live blocks with a line are of it, and
    what they are of all live blocks."""
    file = os.path.join(folder, "r.json")
    command = [sys.executable, "-m", "hakmem", "run", "--all", "--labels", "site", "--report", file, *options]
    done = subprocess.run([*command, "-c", program + END], stdout=subprocess.PIPE, text=True, check=True)
    found = hakmem.Snapshot.load(file).parts
    anonymous = int(done.stdout) << 10
    lines = sum(site["live_bytes"] for site in found["sites"] if site["file"])
    ours = found["stats"]["resident_ours_bytes"]
    live = found["stats"]["live_bytes"]
    return anonymous / (1 << 20), 100 * ours / anonymous, 100 * lines / anonymous, 100 * lines / live


TRACED = """
import tracemalloc
traced, own = tracemalloc.get_traced_memory()[0], tracemalloc.get_tracemalloc_memory()
with open("/proc/self/status") as status:
    print(traced, *(int(line.split()[1]) * 1024 - own for line in status if line.startswith("RssAnon")))
"""
RECORDS = """
import sys, memray
reader = memray.FileReader(sys.argv[1])
print(sum(r.size for r in reader.get_leaked_allocation_records(merge_threads=True) if r.stack_trace(max_stacks=1)))
"""


def output(*command):
    done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def profiled(program, folder, rate):
    """What blocks with a Python function in their stack are of the anonymous memory, and of all live blocks, as a
    profile estimates them."""
    file = os.path.join(folder, "r.json")
    options = ("--all", "--malloc", f"--profile={rate}", "--report", file)
    (anonymous,) = output("-m", "hakmem", "run", *options, "-c", program + END)
    stacks = hakmem.Snapshot.load(file).stacks()
    lines = sum(s.live for s in stacks if s.line)
    return 100 * lines / (anonymous << 10), 100 * lines / sum(s.live for s in stacks)


def by_tracemalloc(program):
    traced, anonymous = output("-X", "tracemalloc", "-c", program + TRACED)
    return 100 * traced / anonymous


def by_memray(program, folder):
    script, file = os.path.join(folder, "p.py"), os.path.join(folder, "memray.bin")
    with open(script, "w") as out:
        # memray lets the names of the script go before it ends
        out.write(program + "import builtins\nbuiltins.kept = list(globals().values())\n" + END)
    (anonymous,) = output("-m", "memray", "run", "-q", "-f", "--trace-python-allocators", "-o", file, script)
    return 100 * output("-c", RECORDS, file)[0] / (anonymous << 10)


def beside():
    """Profiles, tracemalloc and memray, in per cent of the anonymous memory that the program has under each."""
    print("| program | sampled, 512 KiB | of live bytes | sampled, 64 KiB | tracemalloc | memray |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            try:
                parts = [*profiled(program, folder, "512K"), profiled(program, folder, "64K")[0]]
                parts += [by_tracemalloc(program), by_memray(program, folder)]
            except subprocess.CalledProcessError:
                print(f"{name}: left out, its libraries are not here", file=sys.stderr)
                continue
            print(f"| {name} |", *(f"{part:.1f} % |" for part in parts))


# Of the process's own anonymous pages: those of files (data of libraries, relocated pointers), of stacks, of others.
PLACES = """
import hakmem
def places():
    sums, name = {}, ""
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                name = " ".join(words[5:])
            elif words[0] == "Anonymous:":
                kind = "file" if name.startswith("/") else "stack" if name == "[stack]" else "rest"
                sums[kind] = sums.get(kind, 0) + int(words[1])
    return sums["file"], sums.get("stack", 0), sums["rest"]
print(*places())
"""
TRIMMED = "import hakmem; hakmem.trim()\n"


def resting(program, folder):
    """MiB: anonymous memory, and its parts."""
    file = os.path.join(folder, "r.json")
    command = ["-m", "hakmem", "run", "--all", "--malloc", "--labels", "site", "--report", file, "-c"]
    files, stack, rest = (kib / 1024 for kib in output(*command, program + PLACES))
    found = hakmem.Snapshot.load(file).parts
    stats, mib = found["stats"], 1 << 20
    lines = sum(site["live_bytes"] for site in found["sites"] if site["file"]) / mib
    ours = stats["resident_ours_bytes"] / mib
    live, free = stats["live_bytes"] / mib, (stats["cached_bytes"] + stats["retained_bytes"]) / mib
    parts = [lines, live - lines, free, ours - live - free, files, stack + rest - ours]
    (trimmed,) = output(*command, program + TRIMMED + END)
    return [sum(parts), *parts, 100 * lines / sum(parts), 100 * lines / (trimmed / 1024)]


def table_of_rest():
    print("| program | anonymous, MiB | with a line | live without | free | hakmem's own | of files | other |", end="")
    print(" with a line, per cent | after trim |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            try:
                print(f"| {name} |", *(f"{part:.1f} |" for part in resting(program, folder)))
            except subprocess.CalledProcessError:
                print(f"{name}: left out, its libraries are not here", file=sys.stderr)


def main():
    modes = {"--beside": beside, "--rest": table_of_rest}
    if sys.argv[1:]:
        modes[sys.argv[1]]()
        return
    print("| program | anonymous, MiB | hakmem's | live with a line | of live bytes |", end="")
    print(" without: hakmem's | live with a line |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            try:
                size, *parts = measure(program, folder, "--malloc")
                parts += measure(program, folder)[1:3]
            except subprocess.CalledProcessError:
                print(f"{name}: left out, its libraries are not here", file=sys.stderr)
                continue
            print(f"| {name} | {size:.1f} |", *(f"{part:.1f} % |" for part in parts))


if __name__ == "__main__":
    main()
