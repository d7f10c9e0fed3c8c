"""Objects from CPython's free lists: whether they have the line that takes them, or that which made their block."""

import json
import os
import re
import subprocess
import sys
import unittest

from support import ProgramCase, needs_objects, preloaded

COMMAND = os.environ.get("HAKMEM_COMMAND")
FOLLOWED = sys.version_info >= (3, 13)

# What temporaries() makes goes into free lists, from which keeps() takes it.
PROGRAM = """
import sys


def temporaries(kinds, n):
    for make in kinds:
        kept = []
        for i in range(n): kept.append(make(i))


def keeps(kinds, n):
    for make in kinds:
        for i in range(n): kept.append(make(i))


def a_tuple(i): return (i, kept)
def a_list(i): return [i]
def a_dict(i): return {}
def a_float(i): return i * 0.5
kept = []
temporaries([a_tuple, a_list, a_dict, a_float], 60)
keeps([a_tuple, a_list, a_dict, a_float], 60)
"""

# Of each kind of object one function, which makes one and keeps nothing else.
KINDS = """
import gc


class Plain:
    def __init__(self): self.a = 1
    def call(self): pass


class Slots:
    __slots__ = ("a",)


class Keys:
    def __getitem__(self, key): return key


def generator(): yield
pair, plain, keys, numbers, many, text = (1, 2), Plain(), Keys(), range(9), [0] * 9, "hello" * 20
iterators = iter([filter(None, pair) for _ in range(361)])
def a_tuple(i): return (i, pair)
def a_resized_tuple(i): return tuple(next(iterators))
def a_list(i): return [i]
def a_called_list(i): return list(pair)
def a_dict(i): return {}
def a_full_dict(i): return {"a": i}
def a_set(i): return {i}
def a_float(i): return i * 0.5
def an_int(i): return i + 100000
def a_complex(i): return i * 1j
def a_str(i): return text + "."
def a_bytes(i): return text.encode()
def a_plain(i): return Plain()
def a_slotted(i): return Slots()
def a_generator(i): return generator()
def a_function(i): return lambda: 0
def a_slice(i): return keys[1:i]
def a_range(i): return range(5)
def a_range_iter(i): return iter(numbers)
def a_list_iter(i): return iter(many)
def a_tuple_iter(i): return iter(pair)
def a_method(i): return plain.call
def a_builtin(i): return many.append


def first(make):
    made = []
    for i in range(60): made.append(make(i))


def second(make):
    for i in range(300): kept.append(make(i))


kept = []
gc.disable()
for make in [f for name, f in sorted(globals().items()) if name.startswith(("a_", "an_"))]:
    make(0)
    first(make)
    second(make)
"""
# Whose objects have a block more, which is no object. Labels of domains tell them apart, those of subsystems do not.
OWNERS = ("a_list", "a_called_list", "a_full_dict")
# Where the length is not known, CPython before 3.14 makes a tuple of ten items and shrinks that, which copies it.
COPIES = {"a_resized_tuple": int(sys.version_info < (3, 14))}


@needs_objects
class Reused(ProgramCase):
    def report(self, *, check=True, program=PROGRAM, **options):
        file = self.folder / "r.json"
        path = self.script(program.lstrip("\n"))
        done = self.python("-S", path, env=preloaded(all_domains=True, report=str(file), **options), check=check)
        self.assertEqual(done.stderr, "")
        return json.loads(file.read_text())["contexts"][0]

    def by_caller(self, context):
        """Of a profile: blocks by the function that makes the object and who called that."""
        frames, found = context["frames"], {}
        for stack in context["stacks"]:
            names = [frames[n]["function"] for n in stack["frames"]]
            for inner, outer in zip(names, names[1:]):
                if inner.startswith("a_"):
                    found[inner, outer] = found.get((inner, outer), 0) + stack["live_blocks"]
        return found

    def at_functions(self, context, names, what="live_blocks"):
        """What stands at the lines of these functions."""
        found = dict.fromkeys(names, 0)
        for line in context["stacks"]:
            name = context["frames"][line["frames"][0]]["function"] if line["frames"] else ""
            if name in found:
                found[name] += line.get(what, 0)
        return found

    def test_lines(self):
        """What lives was taken by lines of other functions than those that made the temporaries."""
        takers = [f"b_{kind}" for kind in ("tuple", "list", "float")]
        program = PROGRAM.replace(
            "keeps([a_tuple, a_list, a_dict, a_float], 60)",
            "def b_tuple(i): return (i, kept)\ndef b_list(i): return [i]\ndef b_float(i): return i * 0.5\n"
            "keeps([b_tuple, b_list, b_float], 60)",
        )
        context = self.report(program=program, labels="site")
        off = self.report(program=program, labels="site", reused="off")
        taken, without = (self.at_functions(report, takers) for report in (context, off))
        self.assertLess(min(without.values()), 58, "some have the line of the temporaries")
        self.assertNotEqual(off["reused"], "followed")
        marked = self.at_functions(off, takers, "reused_bytes")
        # The items of a list are a block that is no object.
        self.assertEqual({name for name, n in marked.items() if n} - {"b_list"}, {name for name, n in without.items() if n} - {"b_list"})
        if FOLLOWED:
            self.assertEqual(context["reused"], "followed")
            self.assertGreaterEqual(min(taken.values()), 58, taken)
            self.assertFalse([line for line in context["stacks"] if line.get("reused_bytes")])
        else:
            self.assertEqual(context["reused"], "CPython before 3.13 does not tell who takes it")
            self.assertEqual(taken, without)

    def test_lines_are_marked_in_text(self):
        off = {} if not FOLLOWED else {"reused": "off"}
        self.report(labels="site", **off)
        file = str(self.folder / "r.json")
        texts = [self.hakmem("report", file).stdout]
        if COMMAND:
            texts.append(subprocess.run([COMMAND, "report", file], capture_output=True, text=True, check=True).stdout)
        for text in texts:
            self.assertRegex(text, r"a_float.* ~\n")
            self.assertIn("\n  ~ most are of kinds that CPython keeps in free lists: another line may have taken them since\n", text)
        if FOLLOWED:
            self.report(labels="site")
            self.assertNotIn(" ~\n", self.hakmem("report", file).stdout)

    def test_stacks_of_an_exact_profile(self):
        context = self.report(profile="exact")
        found = self.by_caller(context)
        kept = {kind: found.get((kind, "keeps"), 0) for kind in ("a_tuple", "a_list", "a_dict", "a_float")}
        if FOLLOWED:
            self.assertEqual(context["reused"], "followed")
            self.assertGreaterEqual(min(kept.values()), 58, found)
        else:
            self.assertLess(min(kept.values()), 58, found)
        self.assertEqual(sum(s["live_bytes"] for s in context["stacks"]), context["stats"]["live_bytes"])

    def of_kinds(self, context, caller):
        """Stacks of what the functions of KINDS made for that caller, by function."""
        frames, found = context["frames"], {name: [] for name in re.findall(r"def (an?_\w+)", KINDS)}
        for stack in context["stacks"]:
            names = [frames[n]["function"] for n in stack["frames"]]
            if names[1:2] == [caller] and names[0] in found:
                found[names[0]].append(stack)
        return found

    @unittest.skipUnless(FOLLOWED, "nothing to follow before 3.13")
    def test_each_object_counts_once(self):
        """CPython tells of new objects as of those from free lists."""
        for labels in ({}, {"labels": "site"}):
            context = self.report(program=KINDS, profile="exact", **labels)
            self.assertEqual(context["reused"], "followed")
            for caller, n in (("first", 60), ("second", 300)):
                for name, stacks in self.of_kinds(context, caller).items():
                    if not labels:
                        stacks = [s for s in stacks if s["label"] == "obj"]
                    elif name in OWNERS:
                        continue
                    with self.subTest(name, caller=caller, **labels):
                        made, samples, live = (sum(s[what] for s in stacks) for what in ("alloc_blocks", "samples", "live_blocks"))
                        asked = n * (1 + COPIES.get(name, 0))
                        self.assertEqual((made, samples), (asked, asked))
                        self.assertEqual(sum(sum(s.get("lifetime", ())) for s in stacks), made - live)
                        if caller == "second":
                            self.assertEqual(live, n)

    @unittest.skipUnless(FOLLOWED, "nothing to follow before 3.13")
    def test_each_object_is_one_sample(self):
        """Nothing of what lives until the end died before."""
        context = self.report(program=KINDS, profile="1K", reused="on")
        self.assertEqual(context["reused"], "followed")
        stacks = [s for name, some in self.of_kinds(context, "second").items() if name not in COPIES for s in some]
        self.assertGreater(sum(s["samples"] for s in stacks), 100)
        self.assertEqual([s for s in stacks if s.get("lifetime") or s["live_samples"] != s["samples"]], [])

    def test_sampled_profiles_follow_where_they_are_told_to(self):
        context = self.report(profile="16K")
        self.assertNotEqual(context["reused"], "followed")
        if FOLLOWED:
            context = self.report(profile="16K", reused="on")
            self.assertEqual(context["reused"], "followed")

    def test_what_cannot_be_had_stops_the_start(self):
        for options, said in (
            ({"labels": "site", "reused": "maybe"}, "HAKMEM_REUSED=maybe: on or off expected"),
            ({"reused": "on"}, "this is for lines or a profile" if FOLLOWED else "CPython before 3.13"),
            *((() if FOLLOWED else (({"labels": "site", "reused": "on"}, "CPython before 3.13"),))),
        ):
            done = self.python("-S", "-c", "print(1)", env=preloaded(all_domains=True, **options), check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    @unittest.skipUnless(FOLLOWED, "nothing to follow before 3.13")
    def test_another_tool_that_follows_is_left_alone(self):
        """tracemalloc takes the one place that there is; the program goes on."""
        done = self.python(
            "-S",
            "-c",
            "import tracemalloc; tracemalloc.start(); a = [(i, i) for i in range(1000)]; tracemalloc.stop(); "
            "b = [float(i) for i in range(1000)]; print(len(a) + len(b))",
            env=preloaded(all_domains=True, labels="site", report=str(self.folder / "r.json")),
        )
        self.assertEqual((done.stdout, done.stderr), ("2000\n", ""))

    @unittest.skipUnless(FOLLOWED, "nothing to follow before 3.13")
    def test_many_threads_and_collections(self):
        done = self.python(
            self.script(
                """
                import gc, threading
                def work(n):
                    kept = []
                    for i in range(n):
                        kept.append([(i, [i]), {"a": i}, i * 0.5, slice(i), iter([i])])
                        if i % 100 == 0: del kept[:50]
                        if i % 500 == 0: gc.collect()
                threads = [threading.Thread(target=work, args=(3000,)) for _ in range(4)]
                for t in threads: t.start()
                for t in threads: t.join()
                print("done")
                """
            ),
            env=preloaded(all_domains=True, labels="site", profile="exact", report=str(self.folder / "r.json")),
        )
        self.assertEqual((done.stdout, done.stderr), ("done\n", ""))
        context = json.loads((self.folder / "r.json").read_text())["contexts"][0]
        self.assertEqual(sum(s["live_bytes"] for s in context["stacks"]), context["stats"]["live_bytes"])


if __name__ == "__main__":
    unittest.main()
