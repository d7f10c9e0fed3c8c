"""HAKMEM=key=value,...: what each key does, and what is said about bad ones."""

import json
import os
import re
import signal
import subprocess
import sys

from shim import HELPERS, PYTHON, SHIM, Case, main, reports

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sizes import NONE, SIZES  # noqa: E402

GREEDY = """
kept = []
try:
    while len(kept) < 100:
        kept.append(bytearray(1 << 20))
except MemoryError:
    pass
print(len(kept))
"""

# Many middle-sized blocks, freed; then what is resident, twice.
BREATHING = """
import time
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
kept = [bytearray(2000) for i in range(60000)]
del kept
first, end = resident(), time.monotonic() + {seconds}
while time.monotonic() < end and first - resident() <= 20 << 20:
    time.sleep(0.1)
print(first - resident() > 20 << 20)
"""


class Settings(Case):
    def python(self, settings, program):
        return self.start([PYTHON, "-c", program], settings)

    def cached(self, settings):
        program = "for i in range(4): b = bytearray(3 << 20); del b"
        done = self.python(settings + ",report=stderr", program)
        (report,) = reports(done.stderr)
        return report["cached"] + report["retained"]

    def test_a_mode_and_a_policy_act(self):
        nothing = self.path("nothing", "hakmem-policy 1\nbig_cache none\nretained_bytes none\nretained_percent none\n")
        fast = self.path("fast", "hakmem-policy 1\nmode fast\n")
        self.assertGreater(self.cached(""), 3 << 20)
        self.assertLess(self.cached("mode=minimal"), 1 << 20)
        self.assertLess(self.cached(f"policy={nothing}"), 3 << 20)
        self.assertLess(self.cached(f"mode=fast,policy={nothing}"), 3 << 20)
        self.assertGreater(self.cached(f"mode=minimal,policy={fast}"), 3 << 20)

    def test_a_program_with_more_rights_than_its_user_has_no_settings(self):
        """It has the shim by its linker: the loader itself forgets LD_PRELOAD there."""
        self.need("cc")
        if os.geteuid() != 0:
            self.skipTest("only root can make such a program of another user")
        os.chmod(self.dir, 0o755)
        program = self.path("program")
        source = self.path("program.c", "#include <stdlib.h>\nint main(void) { return malloc(100) ? 0 : 1; }\n")
        subprocess.run(
            ["cc", "-fno-builtin", "-o", program, source, "-Wl,--no-as-needed", SHIM, f"-Wl,-rpath,{os.path.dirname(SHIM)}"],
            check=True,
        )
        report = self.path("report")
        for mode, is_there in ((0o755, True), (0o4755, False)):
            os.chmod(program, mode)
            settings = {"HAKMEM": f"report={report}" if is_there else f"report={report},limit=wrong"}
            user = None if is_there else 65534
            done = subprocess.run([program], env=self.environment() | settings, capture_output=True, text=True, user=user)
            self.assertEqual((done.returncode, done.stderr, os.path.exists(report)), (0, "", is_there))
            if is_there:
                os.unlink(report)

    def test_a_key_that_there_is_not_is_told_in_one_line(self):
        for item in ("reprot=/var/log/a/long/name/of/a/file", "x" * 2000):
            done = self.start(["/bin/true"], item)
            self.assertRegex(done.stderr, r"\Ahakmem: HAKMEM: '%s[^\n\0]*; the program is not started\n\Z" % item[:80])
            self.assertEqual(done.returncode, 2)

    def test_a_pipe_that_nobody_reads_is_told(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for key in ("report", "profile"):
            done = self.start(["/bin/true"], f"{key}={pipe}")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"no {key} in {pipe}: No such device or address", done.stderr)

    def test_what_is_learned_is_written_and_acts_at_the_next_start(self):
        file = self.path("learned", "")
        os.remove(file)
        large = "b = [bytearray(1 << 20) for i in range(100)]"
        forks = "import os, sys\nif os.fork() == 0: sys.exit()\nos.wait()\nprint(os.path.exists(%r))\n" % file
        done = self.python(f"learn={file}", forks + large)
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))
        with open(file) as f:
            learned = f.read()
        self.assertRegex(learned, r"(?m)^hakmem-policy 1\nmode fast\nexpected_bytes 1[01]\dM\n\Z")
        # A process that is over at once, as a shell is, leaves it.
        self.assertEqual(self.python(f"learn={file}", "print(1)").stderr, "")
        with open(file) as f:
            self.assertEqual(f.read(), learned)
        nothing = self.path("nothing", "hakmem-policy 1\nbig_cache none\nretained_bytes none\nretained_percent none\n")
        self.assertLess(self.cached(f"learn={nothing}"), 3 << 20)
        fast = self.path("fast", "hakmem-policy 1\nmode fast\n")
        self.assertGreater(self.cached(f"learn={nothing},policy={fast}"), 3 << 20)

    def test_what_memory_is_worth_decides_what_is_kept(self):
        kept = {word: self.cached(f"memory={word}") for word in ("cheap", "dear")}
        self.assertGreater(kept["cheap"], 3 << 20)
        self.assertLess(kept["dear"], kept["cheap"])
        self.assertEqual(self.cached("price=5"), kept["cheap"])
        file = self.path("learned", "")
        for setting, expected in (
            ("memory=dear", "price 1000\n"),
            ("price=7", "mode fast\nprice 7\n"),
            ("memory=64M", "mode fast\nbig_cache 32M\nretained_bytes 32M\nretained_percent none\nprice 5\nmemory 64M\n"),
            ("mode=balanced", ""),
        ):
            os.remove(file)
            self.assertEqual(self.python(f"learn={file},{setting}", "print(1)").stderr, "")
            with open(file) as f:
                learned = [line for line in f if not line.startswith(("#", "expected_bytes"))]
            self.assertEqual("".join(learned), "hakmem-policy 1\n" + expected, setting)

    def test_a_program_that_learns_keeps_what_it_keeps_without(self):
        program = """
import mmap, time
b = [bytearray(100000) for i in range(200)]
del b
end = time.time() + 3
while time.time() < end: time.sleep(0.05); sum(range(50000))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""
        without = int(self.python("mode=balanced", program).stdout)
        learned = int(self.python(f"mode=balanced,learn={self.path('kept')}", program).stdout)
        self.assertGreater(learned, without - 5000)  # KiB; 20 MB would go

    def test_a_program_that_does_little_pays_for_no_learner(self):
        file = self.path("learned", "hakmem-policy 1\nmode fast\n")

        def faults(settings):
            program = subprocess.Popen(["/bin/sleep", "1"], env=self.environment(settings))
            used = os.wait4(program.pid, 0)[2]
            program.returncode = 0
            return used.ru_minflt

        # A thread, and no measurement of costs.
        self.assertLess(faults(f"learn={file}"), faults("mode=fast") + 30)

    def test_a_learned_file_that_is_none_is_told_and_stays(self):
        broken = self.path("broken", "hakmem-policy 1\n\nmagazine 1\n")
        done = self.python(f"limit=64M,learn={broken}", "print(1)")
        self.assertEqual((done.stdout, done.returncode), ("", 2))
        self.assertIn(f"{broken}:3: magazine: 2 to 128, or none (HAK_NONE); the program is not started", done.stderr)
        with open(broken) as f:
            self.assertEqual(f.read(), "hakmem-policy 1\n\nmagazine 1\n")

    def test_a_file_that_may_not_grow_is_told_and_ends_nobody(self):
        old = "hakmem-policy 1\nmode fast\n"

        def full(settings, command):  # Python would ignore the signal
            return self.start(["bash", "-c", f"ulimit -f 0; exec {command}"], settings)

        for key in ("learn", "report", "profile"):
            file = self.path(key)
            done = full(f"{key}={file}", "/bin/true")
            self.assertEqual(done.returncode, 0, key)
            self.assertRegex(done.stderr, rf"\Ahakmem: HAKMEM: no {key} in {file}: File too large\n\Z")
        # What was there stays, and nothing is left beside it.
        kept = self.path("kept", old)
        self.need("perl")
        done = full(f"learn={kept}", "perl -e '$t = time; while (time - $t < 4) { my @a = map { q(x) x 1000 } 1 .. 100 }'")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"no learn in {kept}: File too large", done.stderr)
        with open(kept) as f:
            self.assertEqual(f.read(), old)
        self.assertEqual([f for f in os.listdir(self.dir) if ".part-" in f], [])

    def test_a_policy_in_a_pipe(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for key in ("policy", "learn"):
            done = self.start(["/bin/true"], f"{key}={pipe}")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{pipe}:1: 'hakmem-policy 1' expected; the program is not started", done.stderr)
        shell = "exec env LD_PRELOAD=%s HAKMEM=policy=<(sleep 0.2; printf 'hakmem-policy 1\\nmode fast\\n') /bin/true" % SHIM
        done = self.start(["bash", "-c", shell])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_policy_that_is_cut_off_is_told(self):
        cut = self.path("cut", "hakmem-policy 1\nexpected_bytes 33")
        for key in ("policy", "learn"):
            done = self.start(["/bin/true"], f"{key}={cut}")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{cut}:2: the last line has no end, the file seems to be cut off; the program", done.stderr)

    def test_a_policy_that_is_none_is_told_with_its_line(self):
        broken = self.path("broken", "hakmem-policy 1\n\nmagazine 1\n")
        done = self.python(f"limit=64M,policy={broken}", "print(1)")
        self.assertEqual((done.stdout, done.returncode), ("", 2))
        self.assertIn(f"{broken}:3: magazine: 2 to 128, or none (HAK_NONE); the program is not started", done.stderr)

    def test_no_settings(self):
        done = self.python("", "print(1)")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("1\n", "", 0))

    def test_bad_settings_are_told_and_the_program_is_not_started(self):
        for item, expected in [
            *((f"limit={size}", "is no size; a size is 1000, 64K") for size in NONE if "," not in size and not size.startswith("1677") and len(size) < 20),
            ("limit=16777216T", "is more than addresses reach"),
            ("limit", "is no size"),
            ("trim=x", "seconds expected"),
            ("trim=0", "seconds expected"),
            ("trim=1.5", "seconds expected"),
            ("trim=86401", "seconds expected"),
            ("reserve=much", "is no size"),
            ("reserve=0", "a size from 4M to 1T expected"),
            ("reserve=4095K", "a size from 4M to 1T expected"),
            ("reserve=1025G", "a size from 4M to 1T expected"),
            ("report=", "stderr or the name of a file expected"),
            ("profile=", "the name of a file expected"),
            ("rate=512", "a size from 1K to 1T expected, or exact"),
            ("rate=0", "a size from 1K to 1T expected, or exact"),
            ("rate=2T", "a size from 1K to 1T expected, or exact"),
            ("rate=often", "is no size"),
            ("window=0", "is no time"),
            ("window=1e3s", "is no time"),
            ("window=366d", "is no time"),
            ("name=", "1 to 63 bytes expected"),
            ("name=" + "x" * 64, "1 to 63 bytes expected"),
            ("check=", "report, abort or off expected"),
            ("check=yes", "report, abort or off expected"),
            ("canary=yes", "on or off expected"),
            ("quarantine=", "on or off expected"),
            ("live=", "on, off or a path with a slash expected"),
            ("live=maybe", "on, off or a path with a slash expected"),
            ("trace=15", "a number of calls expected, 16 to 32768"),
            ("trace=32769", "a number of calls expected, 16 to 32768"),
            ("trace=on", "a number of calls expected, 16 to 32768"),
            ("guard=", "a number expected"),
            ("mode=", "the mode '' is none of balanced, minimal"),
            ("mode=quick", "the mode 'quick' is none of balanced, minimal"),
            ("policy=", "No such file or directory"),
            ("policy=/no/such", "/no/such: No such file or directory"),
            ("learn=", "the name of a file expected"),
            ("memory=", "cheap, normal, dear or a size from 1M to 1T expected"),
            ("memory=costly", "cheap, normal, dear or a size from 1M to 1T expected"),
            ("memory=4K", "cheap, normal, dear or a size from 1M to 1T expected"),
            ("memory=2T", "cheap, normal, dear or a size from 1M to 1T expected"),
            ("price=", "1 to 1000000 expected, millionths of the CPU time for a MiB"),
            ("price=0", "1 to 1000000 expected, millionths of the CPU time for a MiB"),
            ("price=1000001", "1 to 1000000 expected, millionths of the CPU time for a MiB"),
            ("price=0.5", "1 to 1000000 expected, millionths of the CPU time for a MiB"),
            ("learn=/no/such", "/no/such: No such file or directory"),
            ("guard=0", "a number expected"),
            ("guard=1073741825", "a number expected"),
            ("color=blue", "there are limit=SIZE"),
            ("=", "there are limit=SIZE"),
            ("report=" + "x" * 5000, "too long"),
        ]:
            with self.subTest(item=item[:30]):
                done = self.python(f"{item},,limit=1G,", "print(1)")
                self.assertEqual((done.stdout, done.returncode), ("", 2))
                lines = done.stderr.splitlines()
                self.assertEqual(len(lines), 1, done.stderr[:300])
                self.assertTrue(lines[0].startswith(f"hakmem: HAKMEM: '{item[:80]}"), lines[0])
                self.assertIn(expected, lines[0])
        none = "there is no profile: profile=FILE or probes=on expected"
        for key, value, why in (("signal", "USR1", "there is no profile=FILE to write"), ("rate", "64K", none), ("window", "60s", none)):
            done = self.python(f"{key}={value}", "print(1)")
            line = f"hakmem: HAKMEM: '{key}': {why}; the program is not started\n"
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("", line, 2))
        self.assertEqual(os.listdir(self.dir), [])

    def test_sizes(self):
        for size, expected in SIZES:
            [report] = reports(self.python(f"limit={size},report=stderr", "pass").stderr)
            self.assertEqual(report["hard limit"], expected)

    def test_limit(self):
        for none in ("1G", "0"):
            self.assertEqual(self.python(f"limit={none}", GREEDY).stdout, "100\n")
        for text in ("30M", "30720K", "31457280"):
            done = self.python(f"limit={text},report=stderr", GREEDY)
            self.assertLess(int(done.stdout), 30, done.stderr)
            self.assertGreater(int(done.stdout), 15)
            [report] = reports(done.stderr)
            self.assertEqual(report["hard limit"], 30 << 20)
            self.assertGreater(report["failures"], 0)

    def test_limit_of_what_jemalloc_would_give(self):
        program = (
            "import ctypes\nlibrary = ctypes.CDLL(None)\nlibrary.mallocx.restype = ctypes.c_void_p\ntaken = 0\n"
            "while taken < 100 and library.mallocx(ctypes.c_size_t(1 << 20), 3 << 20): taken += 1\nprint(taken)"
        )
        done = self.python("limit=30M,report=stderr", program)
        self.assertTrue(15 < int(done.stdout) < 30, done.stdout)
        [report] = reports(done.stderr)
        self.assertGreater(report["failures"], 0)

    def test_reserve_leaves_addresses_to_a_program_that_limits_its_own(self):
        program = (
            "import mmap, resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
            "try: mmap.mmap(-1, 64 << 20)\nexcept OSError as e: print(e.errno == 12)\n"
            "else: print(len(bytearray(96 << 20)))"
        )
        for settings in ("", "reserve=4M"):
            self.assertEqual(self.python(settings, program).stdout, f"{96 << 20}\n")
        # What is reserved counts, used or not.
        self.assertEqual(self.python("reserve=2Gi", program).stdout, "True\n")

    def test_reserve_takes_addresses_at_the_start(self):
        program = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmSize')][0])"
        before, reserved = (int(self.python(settings, program).stdout) << 10 for settings in ("", "reserve=4G"))
        self.assertLess(before, 1 << 30)
        self.assertGreaterEqual(reserved - before, (4 << 30) - (64 << 20))
        for size in ("1M", "2T", "4Q", ""):
            self.assertIn("reserve", self.python(f"reserve={size}", "print(1)").stderr)

    def test_nothing_that_is_not_used_can_be_written_to(self):
        program = (
            "sizes = [(int(b, 16) - int(a, 16), rights) for line in open('/proc/self/maps')\n"
            "         for (a, b), rights in [(line.split()[0].split('-'), line.split()[1])]]\n"
            "print(sum(n for n, rights in sizes if rights[1] == 'w' and rights[3] == 'p'))"
        )
        for settings in ("", "reserve=8G"):
            self.assertLess(int(self.python(settings, program).stdout), 64 << 20)

    def test_threads_start_under_a_limit_of_addresses(self):
        program = (
            "import threading, time\n"
            "threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(30)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]; print('done')"
        )
        for mib in (272, 520, 528, 1032, 1040):
            start = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({mib << 20}, {mib << 20}))\n"
            start += "import os, sys; os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
            done = self.start([PYTHON, "-c", start, program], "")
            self.assertEqual(done.stdout, "done\n", done.stderr)

    def test_what_the_machine_cannot_have_is_refused(self):
        with open("/proc/sys/vm/overcommit_memory") as file:
            if file.read().strip() == "1":
                self.skipTest("the kernel refuses nothing")
        program = "try: x = [0] * 10**13\nexcept MemoryError: print('refused')"
        self.assertEqual(self.python("", program).stdout, "refused\n")

    def test_report_on_stderr(self):
        done = self.python("report=stderr", "x = bytearray(9 << 20); print(1)")
        [report] = reports(done.stderr)
        self.assertEqual(report["name"], "python3")
        self.assertEqual(report["committed"], report["live"] + report["cached"] + report["metadata"])
        self.assertGreater(report["peak live"], 9 << 20)
        self.assertLess(report["live"], 9 << 20)
        self.assertEqual(report["threads"], 1)
        self.assertEqual(report["failures"], 0)
        self.assertNotIn("hard limit", report)

    def test_report_after_stderr_was_closed_or_moved(self):
        for program in ("import os; os.close(2)", "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 2)"):
            done = self.python("report=stderr", program)
            self.assertEqual(len(reports(done.stderr)), 1, done.stderr)

    def test_report_is_not_written_over_what_the_program_opened(self):
        program = (
            "import os\n"
            "os.closerange(3, 1024)\n"
            "for i in range(250): os.open('secret', os.O_RDWR | os.O_CREAT)"
        )
        done = self.python("report=stderr", program)
        self.assertEqual(os.path.getsize(self.path("secret")), 0)
        self.assertEqual(done.returncode, 0)

    def test_report_in_a_file(self):
        # Relative to where the program began; several processes append.
        program = "import os; os.chdir('/'); os.waitpid(os.fork() or os._exit(0), 0)"
        for _ in range(2):
            self.assertEqual(self.python("report=here.txt,name=some name", program).stderr, "")
        with open(self.path("here.txt")) as file:
            found = reports(file.read())
        self.assertEqual([r["name"] for r in found], ["some name"] * 2)

    def test_a_file_that_cannot_be_written(self):
        for name, why in (("/nowhere/x", "No such file"), (".", "Is a directory"), ("/dev/full", "No space left")):
            done = self.python(f"report={name}", "print(1)")
            self.assertEqual((done.stdout, done.returncode), ("1\n", 0))
            line = rf"hakmem: HAKMEM: no report in .*{name}: {why}[^\n]*\n"
            # At the start, where somebody may still look; what only a write shows, at the end.
            self.assertRegex(done.stderr, f"^{line}$" if name == "/dev/full" else f"^{line}{line}$")
        # Not into a file of the program that has the number of standard error.
        program = "import os; os.close(2); os.open('own', os.O_RDWR | os.O_CREAT)"
        self.python("report=/nowhere/x", program)
        self.assertEqual(os.path.getsize(self.path("own")), 0)

    def test_a_file_that_will_not_be_written_is_told_at_the_start(self):
        # ls closes standard error before the end.
        for key in ("report", "profile"):
            done = self.start(["/bin/ls", "/dev/null"], f"{key}=/nowhere/x")
            self.assertEqual((done.stdout, done.returncode), ("/dev/null\n", 0))
            self.assertRegex(done.stderr, f"^(hakmem: HAKMEM: no {key} in /nowhere/x: No such file or directory\n)+$")
        # Children do not say it again, and a file that may come is none that is missing.
        program = "import os\nfor i in range(3): os.waitpid(os.fork() or os._exit(0), 0)"
        self.assertEqual(self.python("report=/nowhere/x", program).stderr.count("\n"), 2)
        self.path("there", "before\n")
        for name in ("there", "new"):
            self.assertEqual(self.python(f"report={name}", "import os; os._exit(0)").stderr, "")
        self.assertEqual(os.listdir(self.dir), ["there"])

    def test_a_report_beside_what_the_program_writes(self):
        # ls closes its standard output before the end; the other one flushes a buffer of libc's after the report.
        late = "import ctypes; ctypes.CDLL(None).printf(b'late\\n')"
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for command, printed in ((["/bin/ls", "/dev/null"], "/dev/null\n"), ([PYTHON, "-c", late], "late\n")):
                with self.subTest(name=name, command=command), open(self.path("out"), "w+") as out:
                    subprocess.run(command, stdout=out, env=self.environment(f"report={name}"), check=True, timeout=120)
                    out.seek(0)
                    text = out.read()
                    self.assertEqual((text.count(printed), len(reports(text.replace(printed, "")))), (1, 1), text)

    def test_a_profile_beside_what_the_program_writes(self):
        # The same two, where a profile is written.
        late = "import ctypes; ctypes.CDLL(None).printf(b'late\\n')"
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for command, printed in ((["/bin/ls", "/dev/null"], "/dev/null\n"), ([PYTHON, "-c", late], "late\n")):
                with self.subTest(name=name, command=command), open(self.path("out"), "w+") as out:
                    done = subprocess.run(
                        command, stdout=out, stderr=subprocess.PIPE, env=self.environment(f"profile={name},rate=1K"),
                        check=True, timeout=120
                    )
                    out.seek(0)
                    text = out.read()
                    self.assertEqual((text.count(printed), done.stderr), (1, b""), text)
                    report = json.loads(text.replace(printed, "", 1))
                    self.assertEqual(report["schema"], "hakmem-report/1")
                    self.assertTrue(report["contexts"][0]["stacks"])

    def test_a_bad_setting_takes_no_limit_from_the_program(self):
        # Whatever is wrong beside it; what is right comes to nothing, too.
        for bad in ("mode=quick", "policy=/no/such", "learn=/no/such/x", "name=", "report=", "limi=1G", "limit=64Mo"):
            for settings in (f"limit=30M,{bad}", f"{bad},limit=30M"):
                done = self.python(f"{settings},report=here.txt", GREEDY)
                self.assertEqual((done.stdout, done.returncode), ("", 2), settings)
                self.assertEqual(done.stderr.count("the program is not started\n"), 1)
        done = self.python("limit=,name=,live=maybe", "print(1)")
        self.assertEqual(done.stderr.count("the program is not started\n"), 3)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_heap_that_cannot_be_had_ends_the_start(self):
        done = self.start(["/bin/bash", "-c", "ulimit -v 4000; exec /bin/true"], "limit=64M")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "hakmem: HAKMEM: there is no memory for the heap; the program is not started\n")

    def test_the_last_of_two_settings_counts(self):
        self.python("report=stderr,report=here.txt", "pass")
        self.assertTrue(os.path.exists(self.path("here.txt")))
        done = self.misuse("check=abort,canary=on,check=off,canary=off,live=on,live=off", "overflow")
        self.assertEqual((done.stdout, done.stderr), ("went on\n", ""))

    def test_reports_of_each_process(self):
        program = "import os, sys\nif os.fork() == 0: sys.exit()\nos.wait()"
        done = self.python("report=r-%p.txt", program)
        self.assertEqual(done.stderr, "")
        names = os.listdir(self.dir)
        self.assertEqual(len(names), 2)
        for name in names:
            with open(self.path(name)) as file:
                [report] = reports(file.read())
            self.assertEqual(name, f"r-{report['process']}.txt")

    def test_modes_that_learn(self):
        wait = "import time\nend = time.time() + 2.5\nwhile time.time() < end: bytearray(100000)"
        self.assertRegex(self.python("mode=research", wait).stderr, r"\A# window 1, .* MiB committed")
        self.assertEqual(self.python("mode=learning", wait).stderr, "")
        self.python("mode=research,learn=learned", wait)
        with open(self.path("learned")) as file:
            self.assertRegex(file.read(), r"\A# window 1, .* MiB committed")
        threads = "import os; print(len(os.listdir('/proc/self/task')))"
        for mode, expected in (("balanced", "1\n"), ("learning", "2\n")):
            self.assertEqual(self.python(f"mode={mode}", threads).stdout, expected)

    def test_report_counts_threads(self):
        done = self.python(
            "report=stderr",
            "import threading\n"
            "for i in range(20):\n"
            "    t = threading.Thread(target=lambda: bytearray(5000)); t.start(); t.join()",
        )
        [report] = reports(done.stderr)
        self.assertEqual(report["threads"], 21)

    def test_trim(self):
        self.assertEqual(self.python("", BREATHING.format(seconds=2.2)).stdout, "False\n")
        self.assertEqual(self.python("trim=1", BREATHING.format(seconds=60)).stdout, "True\n")

    def test_trim_leaves_signals_to_the_program(self):
        program = (
            "import os, signal, time\n"
            "signal.signal(signal.SIGUSR1, lambda *a: print('signal', flush=True))\n"
            "time.sleep(0.1); os.kill(os.getpid(), signal.SIGUSR1)"
        )
        self.assertEqual(self.python("trim=1", program).stdout, "signal\n")
        self.assertEqual(self.python("trim=1", "import os; os.abort()").returncode, -signal.SIGABRT)

    def misuse(self, settings, kind):
        return self.start([os.path.join(HELPERS, "preload_helper"), "misuse", kind], settings)

    MISUSE = {
        "double": "DOUBLE_FREE",
        "double-middle": "(DOUBLE_FREE|FOREIGN)",
        "double-big": "DOUBLE_FREE",
        "inside": "POINTER",
        "inside-middle": "POINTER",
        "inside-big": "POINTER",
        "static": "FOREIGN",
        "realloc": "DOUBLE_FREE",
        "realloc-middle": "(DOUBLE_FREE|FOREIGN)",
        "realloc-big": "DOUBLE_FREE",
    }

    CALL = r"  call \d+: {what} 0x[0-9a-f]+, site 0x[0-9a-f]+, thread \d+\n"
    PLACE = r"  0x[0-9a-f]+: [^\n]+/preload_helper\+0x[0-9a-f]+\n"

    def test_check_tells_misuse(self):
        for kind, error in self.MISUSE.items():
            with self.subTest(kind=kind):
                line = rf"hakmem: process \d+: HAK_E_{error}: 0x[0-9a-f]+: [^\n]+\n"
                told = self.misuse("check=report", kind)
                self.assertRegex(told.stderr, f"^{line}$")
                self.assertEqual((told.stdout.splitlines()[-1], told.returncode), ("went on", 0))
                ended = self.misuse("check=abort", kind)
                self.assertRegex(ended.stderr, f"^{line}$")
                self.assertEqual((ended.stdout, ended.returncode), ("", -signal.SIGABRT))

    def test_check_tells_a_hundred_times(self):
        lines = self.misuse("check=report", "many").stderr.splitlines()
        self.assertEqual(len(lines), 101)
        self.assertIn("further misuse is not reported", lines[-1])

    def test_check_has_nothing_to_tell_of_sound_programs(self):
        self.assertEqual(self.misuse("check=abort", "none").stdout, "went on\n")
        program = "import json, threading; print(len(json.dumps(list(range(50000)))))"
        done = self.python("check=abort", program)
        self.assertEqual((done.stdout, done.stderr), ("338890\n", ""))

    def test_guard_tells_what_touches_drawn_blocks(self):
        for kind, what in (
            ("behind", "access out of bounds at 0x[0-9a-f]+, 12 bytes behind the end of"),
            ("after", "use after free at 0x[0-9a-f]+, 50 bytes into"),
        ):
            with self.subTest(kind=kind):
                self.assertEqual(self.misuse("", kind).returncode, 0)
                ended = self.misuse("guard=1", kind)
                self.assertEqual((ended.stdout, ended.returncode), ("", -signal.SIGSEGV))
                freed = r"  freed by thread \d+: frames( 0x[0-9a-f]+)+\n" if kind == "after" else ""
                self.assertRegex(
                    ended.stderr,
                    f"^hakmem: {what} a block of 100 bytes at 0x[0-9a-f]+\n"
                    rf"  allocated by thread \d+: frames( 0x[0-9a-f]+)+\n{freed}"
                    r"(  0x[0-9a-f]+: [^\n]+\+0x[0-9a-f]+\n)+$",
                )
                self.assertRegex(ended.stderr, self.PLACE)
        told = self.misuse("guard=1", "beside")
        self.assertRegex(told.stderr, r"^hakmem: process \d+: HAK_E_BOUNDS: 0x[0-9a-f]+: [^\n]+behind[^\n]+\n$")
        self.assertEqual((told.stdout, told.returncode), ("went on\n", 0))

    def test_guard_leaves_sound_programs_and_other_faults_alone(self):
        program = "import json, threading; print(len(json.dumps(list(range(50000)))))"
        for every in (1, 7, 1000):
            done = self.python(f"guard={every},report=stderr", program)
            self.assertEqual(done.stdout, "338890\n")
            self.assertEqual(len(reports(done.stderr)), 1)
        done = self.python("guard=1", "import ctypes; ctypes.string_at(16)")
        self.assertEqual((done.stderr, done.returncode), ("", -signal.SIGSEGV))

    def test_guard_leaves_signals_that_are_sent(self):
        for number in (signal.SIGSEGV, signal.SIGBUS):
            for how in ("signal.raise_signal(%d)", "os.kill(os.getpid(), %d)"):
                with self.subTest(how=how, number=number):
                    done = self.python("guard=1", f"import os, signal; {how % number}; print('went on')")
                    self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", -number))

    def unread(self, command, settings):
        """With a standard error that nobody reads, as at the end of `command | head -1`."""
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as unread:
            return subprocess.run(
                command,
                env=self.environment(settings),
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=unread,
                text=True,
                timeout=120,
            )

    def test_nobody_reads_what_is_told_at_the_end(self):
        files = [self.path(name) for name in ("profile", "learned")]
        command = [os.path.join(HELPERS, "preload_stacks"), "known"]
        done = self.unread(command, "report=stderr,rate=64K,profile={},learn={}".format(*files))
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0))
        self.assertEqual([file for file in files if not os.path.exists(file)], [])

    def test_nobody_reads_what_is_told_meanwhile(self):
        for settings, kind in (("check=report", "many"), ("trace=16", "double"), ("report=/nowhere/x", "none")):
            with self.subTest(settings=settings):
                done = self.unread([os.path.join(HELPERS, "preload_helper"), "misuse", kind], settings)
                self.assertEqual((done.stdout.splitlines()[-1:], done.returncode), (["went on"], 0))
        self.assertEqual(self.unread(["/bin/true"], "none=of this").returncode, 2)
        ended = self.unread([os.path.join(HELPERS, "preload_helper"), "misuse", "after"], "guard=1")
        self.assertEqual(ended.returncode, -signal.SIGSEGV)

    def test_trace_tells_who_allocated_and_freed(self):
        told = self.misuse("trace=16", "double")
        self.assertEqual((told.stdout, told.returncode), ("went on\n", 0))
        allocated = self.CALL.format(what=r"allocated 100 bytes at")
        freed = self.CALL.format(what=r"freed \d+ bytes at")
        first, history = told.stderr.split("\n", 1)
        self.assertIn("HAK_E_DOUBLE_FREE", first)
        self.assertRegex(history, f"^{allocated}{freed}{freed}(?:{self.PLACE}){{3}}$")
        sites = re.findall(r"site (0x[0-9a-f]+)", history)
        places = dict(re.findall(r"^  (0x[0-9a-f]+): (\S+)$", history, re.M))
        self.assertEqual(set(sites), set(places))
        # The places are in the function that has the error.
        for place in places.values():
            program, offset = place.rsplit("+", 1)
            where = subprocess.run(["addr2line", "-f", "-e", program, offset], capture_output=True, text=True).stdout
            self.assertIn(where.split("\n")[0], ("misuse", "main"))

    def test_canaries_tell_of_what_is_behind_a_block(self):
        self.assertEqual(self.misuse("check=report", "overflow").stderr, "")
        told = self.misuse("canary=on,trace=1024", "overflow")
        first, history = told.stderr.split("\n", 1)
        self.assertIn("HAK_E_BOUNDS", first)
        self.assertRegex(history, "^" + self.CALL.format(what="allocated 100 bytes at"))
        self.assertEqual(self.misuse("canary=on,check=abort", "overflow").returncode, -signal.SIGABRT)

    def test_quarantine_tells_of_writes_after_the_free(self):
        self.assertEqual(self.misuse("check=report", "after-free").stderr, "")
        self.assertIn("HAK_E_USE_AFTER_FREE", self.misuse("quarantine=on", "after-free").stderr)

    def test_sound_programs_use_all_that_is_usable(self):
        for settings in ("canary=on,check=abort", "guard=1,check=abort", "quarantine=on,trace=16,canary=on,check=abort"):
            with self.subTest(settings=settings):
                done = self.misuse(settings, "fits")
                self.assertEqual((done.stdout, done.stderr), ("went on\n", ""))
                program = "import json, threading; print(len(json.dumps(list(range(50000)))))"
                done = self.python(settings, program)
                self.assertEqual((done.stdout, done.stderr), ("338890\n", ""))

    def test_a_report_beside_check(self):
        done = self.misuse("check=report,report=here.txt", "double")
        self.assertIn("DOUBLE_FREE", done.stderr)
        with open(self.path("here.txt")) as file:
            self.assertEqual(len(reports(file.read())), 1)


if __name__ == "__main__":
    main()
