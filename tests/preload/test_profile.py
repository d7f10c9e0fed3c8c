"""HAKMEM=profile=FILE: native stacks with names, sums that are true, and programs that go on whatever happens."""

import json
import math
import os
import random
import re
import subprocess

from shim import HELPERS, PYTHON, SHIM, Case, main

STACKS = os.path.join(HELPERS, "preload_stacks")
SQL = """
create table t (id integer primary key, name text, value real);
insert into t with recursive c(n) as (select 1 union all select n + 1 from c limit 30000)
    select n, printf('name %d', n * 7919 % 10007), n * 0.5 from c;
create index i on t (name);
select count(*), count(distinct name), sum(value) from t;
select name, group_concat(id) from t group by name order by name limit 3;
"""


class Profile:
    """The context of the heap, which is the first of a report; what the program maps itself may have another one."""

    def __init__(self, path):
        with open(path) as file:
            self.report = json.load(file)
        assert self.report["schema"] == "hakmem-report/1"
        context, *more = self.report["contexts"]
        assert [other["name"] for other in more] in ([], ["mapped"])
        self.context = context
        self.stats, self.stacks = context["stats"], context["stacks"]

    def names(self, stack):
        return [self.context["frames"][i]["function"] for i in stack["frames"]]

    def sum(self, what, function=None):
        """Of the stacks with this function in them, its standard error, and what samples are apart."""
        chosen = [s for s in self.stacks if function is None or function in self.names(s)]
        error = math.sqrt(sum(s.get(f"{what}_error", 0) ** 2 for s in chosen))
        mean = self.context["profile"]["mean_bytes"] if self.context["profile"]["mode"] == "sampled" else 0
        return sum(s[what] for s in chosen), error, mean


class Profiles(Case):
    def profile(self, command, settings="rate=64K", stdin="", cwd=None):
        file = self.path("profile.json")
        if os.path.exists(file):
            os.unlink(file)
        done = self.start(command, f"profile={file},{settings}", stdin, cwd)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)
        return Profile(file), done

    def assertNear(self, estimate, truth, slack=0):
        amount, error, mean = estimate
        # Where few samples came, the error that they tell is too small as well.
        error = max(error, math.sqrt(mean * truth))
        self.assertLessEqual(abs(amount - truth), 5 * error + slack, f"{amount} +- {error}, not {truth}")

    def test_windows_by_the_clock(self):
        # Python as a program like any other: 2 MB stay each time, at the end too, and 20 come and go.
        code = (
            "import ctypes, time\nkept = []\nctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))\nfor i in range(40):\n"
            "    some = [bytearray(100000) for _ in range(200)]\n"
            "    kept += [bytearray(100000) for _ in range(20)]\n    time.sleep(0.05)"
        )
        p, _ = self.profile([PYTHON, "-c", code], "rate=16K,window=100ms")
        self.assertIn(p.context["profile"]["window_ns"], [100_000_000 << n for n in range(8)])  # twice as long once there are 32
        marks, histories = p.context["marks"], p.context["histories"]
        self.assertGreaterEqual(len(marks), 8)
        self.assertLessEqual(len(marks), 32)
        self.assertEqual({m["name"] for m in marks}, {""})
        for history in histories:
            self.assertEqual(len(history["live"]), len(marks))
            self.assertEqual(len(history["kept"]), len(marks) + 1)
        live, kept = (sum(sum(h[what][-1:]) if what == "live" else sum(h[what]) for h in histories) for what in ("live", "kept"))
        self.assertGreater(kept, 40 << 20)
        self.assertGreater(live, 40 << 20)
        self.assertTrue(p.context["verdicts"], "something grew")
        p, _ = self.profile([PYTHON, "-c", "pass"], "rate=16K,window=off")
        self.assertNotIn("window_ns", p.context["profile"])
        p, _ = self.profile([PYTHON, "-c", "pass"], "rate=16K")
        self.assertEqual(p.context["profile"]["window_ns"], 60_000_000_000)

    def test_known_stacks(self):
        for settings in ("rate=64K", "rate=16K"):
            p, done = self.profile([STACKS, "known"], settings)
            self.assertEqual(done.stdout, "done\n")
            self.assertEqual(p.report["process"]["runtime"]["name"], "c")
            self.assertEqual(p.context["profile"]["mode"], "sampled")
            self.assertNear(p.sum("live_bytes", "keep_small"), 3000 * 1024)
            self.assertNear(p.sum("live_bytes", "keep_large"), 30 << 20, 1 << 20)  # in whole pages
            self.assertNear(p.sum("alloc_bytes", "churn"), 20000 * 4096)
            self.assertNear(p.sum("live_bytes", "churn"), 0, 4096)
            [names] = {tuple(p.names(s)) for s in p.stacks if "keep_small" in p.names(s)}
            # Compilers put the name of what they changed behind a function's: known.isra.0.
            self.assertEqual(tuple(n.partition(".")[0] for n in names[:4]), ("keep", "keep_small", "known", "main"))
            frames = p.context["frames"]
            [keep] = [f for f in frames if f["function"] == "keep"]
            self.assertEqual((keep["module"], keep["file"], keep["kind"]), ("preload_stacks", "stacks.c", "native"))
            self.assertTrue(any(f.get("module", "").startswith("libc.so") for f in frames))
            self.assertFalse([f for f in frames if "hakmem" in f.get("module", "")], "frames of the shim")

    def test_exact(self):
        p, _ = self.profile([STACKS, "known"], "rate=exact")
        self.assertEqual(p.context["profile"]["mode"], "exact")
        self.assertEqual(p.sum("live_bytes")[0], p.stats["live_bytes"])
        self.assertEqual(p.sum("live_blocks", "keep_small")[0], 3000)
        self.assertEqual(p.sum("alloc_blocks", "churn")[0], 20000)

    def test_memory_of_a_user_in_many_groups(self):
        if os.geteuid() != 0:
            self.skipTest("only root chooses its groups")
        program = "import os, sys; os.setgroups(range(100000, 101500)); os.execv(sys.argv[1], sys.argv[1:])"
        p, _ = self.profile([PYTHON, "-c", program, STACKS, "known"])
        memory = p.report["memory"]
        self.assertGreater(memory["anonymous_bytes"], 32 << 20)
        self.assertGreaterEqual(memory["resident_bytes"], memory["anonymous_bytes"])
        self.assertGreaterEqual(memory["peak_resident_bytes"], memory["resident_bytes"])

    def test_the_parts_of_resident_memory_sum_up_to_it(self):
        for command in ([STACKS, "known"], [PYTHON, "-c", "keep = [str(i) * 9 for i in range(200000)]"]):
            p, _ = self.profile(command)
            memory = p.report["memory"]
            total = sum(part["bytes"] for part in memory["parts"])
            self.assertAlmostEqual(total, memory["resident_bytes"], delta=0.02 * memory["resident_bytes"])
            names = {part["name"]: part["bytes"] for part in memory["parts"]}
            self.assertIn("live blocks", names)
            self.assertIn("stack of the main thread", names)
            self.assertIn("libhakmem-preload.so", names)

    def test_the_default_is_512_kib(self):
        p, _ = self.profile([STACKS, "known"], "name=x")
        self.assertEqual(p.context["profile"]["mean_bytes"], 512 << 10)
        self.assertEqual(p.context["name"], "x")

    def test_programs_against_exact_counts(self):
        """The same allocations twice: exact, and sampled with estimates near them."""
        programs = {"sqlite3": (["sqlite3", ":memory:"], SQL), "git": (["git", "log", "--stat"], "")}
        repository = self.path("repository")
        self.need(*programs)
        git = "git init -q .; for i in $(seq 20); do seq $i $((i * 999)) >f$i; git add -A;" \
              " git -c user.name=a -c user.email=a@b commit -qm $i; done"
        os.mkdir(repository)
        self.start(["bash", "-c", git], cwd=repository)
        for name, (command, stdin) in programs.items():
            with self.subTest(program=name):
                exact, plain = self.profile(command, "rate=exact", stdin, repository)
                self.assertEqual(exact.sum("live_bytes")[0], exact.stats["live_bytes"])
                self.assertEqual(exact.context["profile"]["dropped_samples"], 0)
                sampled, done = self.profile(command, "rate=16K", stdin, repository)
                self.assertEqual(done.stdout, plain.stdout)
                self.assertNear(sampled.sum("alloc_bytes"), exact.sum("alloc_bytes")[0])
                self.assertNear(sampled.sum("live_bytes"), sampled.stats["live_bytes"], 32 << 10)
                deep = [s for s in exact.stacks if len(s["frames"]) > 2]
                self.assertGreater(len(deep), len(exact.stacks) * 0.9)
                self.assertTrue(any(n.startswith("__libc_start_main") for s in deep for n in exact.names(s)))

    def test_python(self):
        if not os.path.exists(PYTHON):
            self.skipTest(f"no {PYTHON}")
        program = "import json; kept = [bytearray(100_000) for i in range(200)]; print(len(json.dumps([1] * 99999)))"
        p, done = self.profile([PYTHON, "-c", program])
        self.assertEqual(done.stdout, "299997\n")
        self.assertNear(p.sum("peak_bytes"), p.stats["peak_bytes"], 2 << 20)

    def test_threads_that_end(self):
        p, _ = self.profile([STACKS, "threads"])
        self.assertNear(p.sum("live_bytes", "thread_body"), 20 * 3000 * 1024)
        self.assertTrue(all("main" not in p.names(s) for s in p.stacks if "thread_body" in p.names(s)))

    def test_fork(self):
        done = self.start([STACKS, "fork"], f"profile={self.path('part-%p.json')},rate=64K")
        self.assertEqual((done.stdout.count("done"), done.stderr, done.returncode), (1, "", 0))
        found = [Profile(self.path(name)) for name in os.listdir(self.dir) if name.startswith("part-")]
        self.assertEqual(len(found), 2)
        for p in found:
            self.assertNear(p.sum("live_bytes", "keep_large"), 30 << 20, 1 << 20)
            self.assertIn(f"part-{p.report['process']['pid']}.json", os.listdir(self.dir))
        own = sorted(p.sum("live_bytes", "in_child")[0] for p in found)
        self.assertEqual(own[0], 0)
        self.assertGreater(own[1], 9 << 20)

    def test_a_forked_child_leaves_the_profile_of_its_parent(self):
        program = (
            "import os, signal, sys, time\n"
            "parent = os.getpid()\n"
            "def written(name):\n"
            "    os.kill(os.getpid(), signal.SIGUSR1)\n"
            "    end = time.monotonic() + 20\n"
            "    while not os.path.exists(name) and time.monotonic() < end: time.sleep(0.01)\n"
            "if os.fork() == 0:\n"
            "    kept = [bytearray(300_000) for i in range(40)]\n"
            "    while os.getppid() == parent: time.sleep(0.01)\n"
            "    written(f'profile.json.{os.getpid()}.1')\n"
            "    sys.exit()\n"
            "written('profile.json.1')\n"
            "print(parent)\n"
        )
        p, done = self.profile([PYTHON, "-c", program], "rate=64K,signal=USR1")  # until both have ended
        self.assertEqual(p.report["process"]["pid"], int(done.stdout))
        names = sorted(os.listdir(self.dir))
        self.assertEqual(names[:2], ["profile.json", "profile.json.1"])
        self.assertEqual(Profile(self.path(names[1])).report["process"]["pid"], int(done.stdout))
        self.assertRegex(names[2], r"^profile\.json\.\d+\.1$")
        self.assertIn(f".{Profile(self.path(names[2])).report['process']['pid']}.", names[2])
        self.assertEqual(len(names), 3)

    def test_exec(self):
        p, done = self.profile([STACKS, "exec"])
        self.assertEqual(done.stdout, "done\n")
        self.assertNear(p.sum("live_bytes", "keep_large"), 30 << 20, 1 << 20)
        self.assertEqual(p.sum("live_bytes", "executes")[0], 0)

    def test_other_stacks(self):
        p, _ = self.profile([STACKS, "context"])
        self.assertNear(p.sum("live_bytes", "coroutine"), 30 << 20, 1 << 20)

    def test_unwind_tables_that_lie(self):
        p, done = self.profile([STACKS, "lies"])
        self.assertEqual(done.stdout, "done\n")
        for name in ("wild", "high", "far", "odd", "next", "saved", "data"):
            self.assertGreater(p.sum("live_bytes", f"lie_{name}")[0], 20 << 20, name)

    def test_broken_unwind_tables(self):
        sections = subprocess.run(["readelf", "-SW", STACKS], capture_output=True, text=True).stdout
        with open(STACKS, "rb") as file:
            good = file.read()
        seed = random.Random(1)
        broken = self.path("broken")
        for name in (".eh_frame", ".eh_frame_hdr"):
            place = re.search(rf" {re.escape(name)} +\w+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) ", sections)
            at, size = int(place[1], 16), int(place[2], 16)
            for kind in range(24):
                bad = bytearray(good)
                for i in range(at, at + size):
                    if kind == 0:
                        bad[i] = 0xFF
                    elif kind == 1:
                        bad[i] = 0
                    elif seed.random() < (0.5, 0.1, 0.02)[kind % 3] and (name == ".eh_frame" or i >= at + 8):
                        bad[i] = seed.randrange(256)
                with open(broken, "wb") as file:
                    file.write(bad)
                os.chmod(broken, 0o755)
                with self.subTest(section=name, kind=kind):
                    p, done = self.profile([broken, "known"])
                    self.assertEqual(done.stdout, "done\n")
                    self.assertNear(p.sum("live_bytes"), p.stats["live_bytes"], 64 << 10)

    def test_a_file_that_cannot_be_written(self):
        for name, why in (("/nowhere/x", "No such file"), ("/dev/full", "No space left"), (self.dir, "Is a directory")):
            done = self.start([STACKS, "known"], f"profile={name}")
            self.assertEqual((done.stdout, done.returncode), ("done\n", 0))
            line = rf"hakmem: HAKMEM: no profile in {name}: {why}[^\n]*\n"
            # At the start, and again at the end; what only a write shows, then alone.
            self.assertRegex(done.stderr, f"^{line}$" if name == "/dev/full" else f"^{line}{line}$")

    def test_a_pipe_that_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        done = subprocess.run(
            [STACKS, "known"],
            env=self.environment(f"profile=/dev/fd/{writer},rate=16K"),
            capture_output=True,
            text=True,
            timeout=120,
            pass_fds=(writer,),
        )
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0))
        self.assertRegex(done.stderr, r"^hakmem: HAKMEM: no profile in /dev/fd/\d+: Broken pipe\n$")

    def test_a_full_disk_leaves_the_file_before(self):
        file = self.path("profile.json", "before")
        script = f"ulimit -f 1; trap '' XFSZ; exec {STACKS} known"
        done = self.start(["bash", "-c", script], None, HAKMEM=f"profile={file},rate=16K", LD_PRELOAD=SHIM)
        self.assertEqual(done.stdout, "done\n")
        self.assertRegex(done.stderr, r"no profile in .*: File too large\n$")
        with open(file) as kept:
            self.assertEqual(kept.read(), "before")
        self.assertEqual([n for n in os.listdir(self.dir) if "part" in n], [])


if __name__ == "__main__":
    main()
