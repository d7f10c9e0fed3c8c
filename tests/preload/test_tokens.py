"""Programs that were compiled with -fsanitize=alloc-token: exact labels by token, and names of types.

The callers are written by hand. Where clang 22 is at hand (CLANG_TOKENS names another place), it compiles a
program, too.
"""

import json
import os
import re
import shutil
import subprocess

from shim import HELPERS, SHIM, Case, main
from waiting import until

TOKENS = os.path.join(HELPERS, "preload_tokens")
COMMAND = os.environ["HAKMEM_COMMAND"]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ROW = re.compile(r"^  (token \w+|unlabelled) +(\d+) +(\d+) +[\d.]+ %", re.M)
KEY = bytes.fromhex("b5d4c9eb79104a796fec8b1b428781d4")
MASK = (1 << 64) - 1


def rotate(x, by):
    return (x << by | x >> (64 - by)) & MASK


def siphash(name):
    """SipHash-2-4 with LLVM's key, of the name of a type."""
    k0, k1 = (int.from_bytes(KEY[i : i + 8], "little") for i in (0, 8))
    a, b, c, d = 0x736F6D6570736575 ^ k0, 0x646F72616E646F6D ^ k1, 0x6C7967656E657261 ^ k0, 0x7465646279746573 ^ k1

    def rounds(n, a, b, c, d):
        for _ in range(n):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d, a = rotate(b, 13) ^ a, rotate(d, 16) ^ c, rotate(a, 32)
            c, a = (c + b) & MASK, (a + d) & MASK
            b, d, c = rotate(b, 17) ^ c, rotate(d, 21) ^ a, rotate(c, 32)
        return a, b, c, d

    data = name.encode()
    words = [data[i : i + 8] for i in range(0, len(data) + 1, 8)]
    for i, word in enumerate(words):
        m = int.from_bytes(word, "little") | (len(data) << 56 & MASK if i == len(words) - 1 else 0)
        a, b, c, d = rounds(2, a, b, c, d ^ m)
        a ^= m
    a, b, c, d = rounds(4, a, b, c ^ 0xFF, d)
    return a ^ b ^ c ^ d


def split(name, pointers, most=MASK):
    """The token of the mode typehashpointersplit."""
    half = most // 2
    return siphash(name) % half + (half if pointers else 0)


class Tokens(Case):
    def labels(self, *arguments, settings="", env=None):
        """The rows of the report at the end: blocks by label, and that the bytes sum up."""
        log = self.path("report")
        if os.path.exists(log):
            os.unlink(log)
        done = self.start([TOKENS, *map(str, arguments)], f"report={log}{settings}", **(env or {}))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(log) as file:
            text = file.read()
        rows = {name: (int(size), int(blocks)) for name, size, blocks in ROW.findall(text)}
        all_bytes, all_blocks = map(int, re.search(r": (\d+) bytes in (\d+) blocks", text).groups())
        self.assertEqual(sum(size for size, _ in rows.values()), all_bytes)
        self.assertEqual(sum(blocks for _, blocks in rows.values()), all_blocks)
        sizes = [size for size, _ in rows.values()]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        return {name: blocks for name, (_, blocks) in rows.items() if name != "unlabelled"}

    def test_the_hash_is_that_of_clang(self):
        # From the tests of LLVM: malloc(sizeof(int)).
        self.assertEqual(siphash("int"), 2689373973731826898)

    def test_every_function(self):
        expected = {f"token {1000 + i:016x}": i + 1 for i in range(17)}
        self.assertEqual(self.labels("functions"), expected)
        for settings in (",check=abort", ",mode=lean", ",guard=2", ",canary=on"):
            with self.subTest(settings):
                self.assertEqual(self.labels("functions", settings=settings), expected)

    def test_every_function_with_the_token_in_its_name(self):
        expected = {f"token {i:016x}": 1 for i in range(1, 15)}
        expected["token 000000000000000f"] = 2
        self.assertEqual(self.labels("fast"), expected)

    def test_preloaded(self):
        # The program finds the shim by the link; LD_PRELOAD changes nothing.
        self.assertEqual(self.labels("fast", env={"LD_PRELOAD": SHIM}), self.labels("fast", env={"LD_PRELOAD": ""}))

    def test_more_tokens_than_labels(self):
        labels = self.labels("many", 1000)
        self.assertEqual(len(labels), 201)
        self.assertEqual(labels.pop("token other"), 2 * 800)
        self.assertEqual(set(labels.values()), {2})

    def test_threads(self):
        for count in (1, 30, 200):
            with self.subTest(count):
                labels = self.labels("threads", count)
                self.assertEqual(len(labels), count)
                self.assertEqual(set(labels.values()), {400})

    def test_what_a_thread_remembers_ends_with_its_heap(self):
        for settings in ("", ",mode=fast", ",check=abort", f",profile={self.path('p')},rate=16K"):
            with self.subTest(settings):
                self.assertEqual(self.labels("forks", 3, settings=settings), {})

    def test_blocks_that_change_their_size(self):
        expected = {f"token {2000 + i:016x}": 1 for i in (1, 2, 3, 4, 6)}
        self.assertEqual(self.labels("realloc"), expected)

    def test_what_cannot_be_had(self):
        self.assertEqual(self.labels("errors"), {})

    def test_what_a_limit_refuses_is_asked_for_once_more(self):
        for function in range(17):
            with self.subTest(function):
                expected = {f"token {1000 + function:016x}": 1}
                self.assertEqual(self.labels("limit", function, settings=",limit=45M"), expected)

    def test_both_slots_of_an_allocation_lie_in_the_table(self):
        """Before a thread has a table of its own, too. The other slot is found by the address."""
        self.need("nm")
        done = subprocess.run(["nm", "-S", SHIM], capture_output=True, text=True, check=True)
        tables = re.findall(r"^([0-9a-f]+) 0*2000 r nothing(?:\.lto_priv\.\d+)?$", done.stdout, re.M)
        if not tables:
            self.skipTest("the shim has no local symbols")
        self.assertEqual([int(at, 16) % 64 for at in tables], [0])

    def test_a_finding_names_the_token(self):
        done = self.start([TOKENS, "misuse"], "trace=64")
        self.assertRegex(done.stderr, r"HAK_E_DOUBLE_FREE.*\n.*allocated 100 bytes at \w+, label token 0000000000000abc")

    # ---- Names ----------------------------------------------------------------------------------------

    def report(self, *arguments, options=()):
        done = self.start([TOKENS, *map(str, arguments)], f"profile={self.path('r.json')},rate=exact")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.hakmem("report", *options, self.path("r.json"))

    def hakmem(self, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_names_of_types(self):
        names = ("shop::Item", False), ("shop::Basket<int>", True), ("plain", False)
        for what, tokens in (("typehashpointersplit", [split(*n) for n in names]), ("typehash", [siphash(n) for n, _ in names])):
            with self.subTest(what):
                text = self.report("types", *tokens)
                for name, _ in names:
                    self.assertRegex(text, rf"{re.escape(name)} ")
                self.assertNotRegex(text, r"token [0-9a-f]{16}")
        # In all forms, by stack too.
        self.assertIn("shop::Basket<int>", self.hakmem("prometheus", self.path("r.json")))

    def test_a_live_process_without_a_profile(self):
        place = self.path("socket")
        tokens = [str(split("shop::Item", False)), str(split("shop::Basket<int>", True)), "5"]
        program = subprocess.Popen([TOKENS, "live", *tokens], env=self.environment(f"live={place}"))
        self.addCleanup(lambda: (program.kill(), program.wait()))

        def text():
            done = subprocess.run([COMMAND, "attach", place, "-o", self.path("now.json")], capture_output=True, timeout=60)
            return self.hakmem("prometheus", self.path("now.json")) if done.returncode == 0 else ""

        until(lambda: "shop::Basket<int>" in text(), "the name of the type")
        self.assertIn('"token 0000000000000005"', text())
        self.assertIn('"shop::Item"', text())

    def test_tokens_below_a_maximum(self):
        tokens = [split("shop::Item", False, 128), split("shop::Basket<int>", True, 128), split("plain", False, 128)]
        self.assertRegex(self.report("types", *tokens), r"token [0-9a-f]{16}")
        text = self.report("types", *tokens, options=("--tokens", "128"))
        self.assertNotRegex(text, r"token [0-9a-f]{16}")
        self.assertIn("shop::Item", json.dumps(text))
        done = subprocess.run([COMMAND, "report", "--tokens=none", self.path("r.json")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "hakmem: --tokens is a number from 1 on, not 'none'; see hakmem --help\n"))

    def test_tokens_of_another_compiler(self):
        # No type has them: the numbers stay.
        text = self.report("types", 77, 1 << 40, MASK)
        for token in (77, 1 << 40, MASK):
            self.assertIn(f"token {token:016x}", text)

    def test_what_it_costs(self):
        self.need("valgrind")

        # One start of valgrind: each kind runs in a process of its own, which begins with what the first has.
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=measured", f"--callgrind-out-file={self.path('callgrind')}-%p",
             TOKENS, "costs", "20000"], env=self.environment(), capture_output=True, text=True, check=True, timeout=100)

        def instructions(process, pairs):
            with open(self.path(f"callgrind-{process}")) as file:
                return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)[1]) / int(pairs)

        cost = {kind: instructions(*of) for kind, *of in map(str.split, done.stdout.splitlines())}
        plain, token, named, unknown = (cost.pop(kind) for kind in ("plain", "token", "named", "unknown"))
        mixed, mixed_token, dense = (cost.pop(kind) for kind in ("mixed-plain", "mixed", "mixed-dense"))
        self.assertEqual(cost, {})
        self.assertGreater(min(plain, mixed), 20)  # malloc and free were counted
        print(f"a pair of malloc and free: {plain:.1f} instructions, with a token {token:.1f}, in the name {named:.1f}, with token 0 {unknown:.1f}; "
              f"of 40 kinds {mixed:.1f} and {mixed_token:.1f}, {dense:.1f} with tokens in sequence")
        self.assertLessEqual(token - plain, 2)
        self.assertLessEqual(named - plain, 2)
        self.assertLessEqual(unknown - plain, 3)
        self.assertLess(mixed_token - mixed, 4)
        self.assertLess(dense - mixed, 4)


CLANG = os.environ.get("CLANG_TOKENS") or shutil.which("clang-22")


class Compiled(Case):
    """What the compiler makes of an unchanged program."""

    def names(self, source, *options):
        """Blocks by label, as `hakmem` names them."""
        if not CLANG:
            self.skipTest("no clang 22 on this machine")
        program, report = self.path("program"), self.path("r.json")
        subprocess.run(
            [CLANG, "-g", "-O1", "-fsanitize=alloc-token", *options, os.path.join(HERE, source), "-o", program,
             "-Wl,--build-id", "-Wl,-rpath," + os.path.dirname(SHIM), SHIM, "-lstdc++"], check=True, timeout=100)
        done = self.start([program], f"profile={report},rate=exact")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run([COMMAND, "prometheus", report], capture_output=True, text=True, timeout=60, check=True)
        return {name: int(blocks) for name, blocks in
                re.findall(r'^hakmem_label_live_blocks{.*label="([^"]*)".*} (\d+)', done.stdout, re.M)}

    def assertHas(self, labels, expected):
        self.assertEqual({k: v for k, v in labels.items() if k in expected}, expected, labels)

    def test_types_of_c(self):
        expected = {"item": 20, "item *": 1, "char": 3, "named": 5, "double": 2}
        self.assertHas(self.names("token_types.c"), expected)
        self.assertHas(self.names("token_types.c", "-Xclang", "-falloc-token-mode=typehash"), expected)

    def test_types_of_cpp(self):
        labels = self.names("token_types.cpp")
        self.assertHas(labels, {"Local": 9, "shop::Item": 7, "shop::Basket<int>": 3, "shop::Item *": 1})
        self.assertFalse([k for k in labels if k.startswith("token ")], labels)

    def test_hosts(self):
        for compiler, expected in (
            (CLANG, [f"token {split(*t):016x}" for t in (("item", True), ("double", False), ("item", True))]),
            ("cc", ["", "", ""]),
        ):
            if not compiler or not shutil.which(compiler):
                continue
            with self.subTest(compiler):
                program = self.path("host")
                subprocess.run([compiler, os.path.join(HERE, "token_host.c"), "-O1", "-Wall", "-Werror", "-I", os.path.join(ROOT, "core", "include"),
                                "-o", program, os.environ["HAKMEM_STATIC"], "-pthread"], check=True, timeout=100)
                done = self.start([program])
                self.assertEqual((done.returncode, done.stdout), (0, ", ".join(expected) + "\n"))

    def test_the_fast_interface(self):
        labels = self.names("token_types.c", "-fsanitize-alloc-token-fast-abi", "-falloc-token-max=16")
        self.assertGreaterEqual(sum(v for k, v in labels.items() if k.startswith("token ")), 20)


if __name__ == "__main__":
    main()
