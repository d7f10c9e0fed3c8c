"""Numbers in documents and headers that sources or golden counts decide: test_constants.py SOURCE"""

import json
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
PARTS = {2: "half", 4: "quarter", 8: "eighth", 16: "sixteenth"}
WORDS = {4: "four", 8: "eight"}
# How a page says a number.
HOW = {
    "": lambda n: f"{n:,}",
    "word": lambda n: WORDS[n],
    "KiB": lambda n: f"{n / 1024:g}",
    "MiB": lambda n: f"{n / (1 << 20):g}",
    "units": lambda n: f"{n * 16}",  # in KiB
    "ms": lambda n: f"{n / 1000000:g}",
    "part": lambda n: f"{1 << n}",
    "and one": lambda n: f"{n + 1}",
    "twice": lambda n: f"{2 * (n + 1)}",
    "doubled": lambda n: f"{0.25 * (1 << n):g}",
}
# Page of docs/internals, what it says, source below core/src, constant there, how.
SAID = """
    allocation | From the {}th free of a context on | heap/ctx.h | HK_PACKED_PAID |
    allocation | If less than {} percent of more than | heap/packed_groups.c | FULL_PERCENT |
    allocation | percent of more than {} units is live | heap/packed_groups.c | UNITS | word
    allocation | uses less than {} KiB only four classes do | heap/packed.c | UNITS | units
    allocation | KiB only {} classes do | heap/packed.c | FEW | word
    allocation | Under a limit below {} KiB there are no such magazines | heap/packed.c | KEEP_LEAST | KiB
    allocation | below {} MiB only for classes of which | heap/packed.c | SMALL | MiB
    allocation | Below {} MiB such a magazine has | heap/account.c | SLABS_FREE | MiB
    allocation | such a magazine has {} slots at first | heap/magazine.c | FEW | word
    allocation | would be more than a {}th of what is committed | heap/refill.c | PART_SHIFT | part
    allocation | It looks at {} chunks at most | space/chunks.c | LOOKS | word
    allocation | filled in less than {} ms each | space/chunks.c | FAST_NS | ms
    allocation | A sweep doubles a magazine of up to {} KiB once | heap/magazine.c | SWEPT_MOST | KiB
    allocation | of runs hold at most a {}nd of what is live and | heap/magazine.c | LIVE_SHIFT | part
    allocation | nd of what is live and {} MiB, all of them together | heap/magazine.c | LEAST | MiB
    allocation | under no limit below {} MiB | heap/magazine.c | LIMIT_SMALL | MiB
    allocation | remembers the sizes of the last {} blocks that it gave up | heap/ctx.h | HK_BIG_MISSED |
    allocation | the budget grows by it, up to {} MiB | heap/big_cache.c | most | MiB
    allocation | from {} KiB on of any size if that grew to it | heap/big_cache.c | REGROW_FROM | KiB
    allocation | a run above {} KiB gets a mapping | heap/big.c | COPIED_MOST | KiB
    reclaim | empties one that holds {} KiB or more, of the next | shared/transfer.c | LEAST | KiB
    reclaim | KiB or more, of the next {} heaps in the list | shared/transfer.c | LOOKS | word
    reclaim | In the last quarter of a limit below {} MiB | heap/account.c | SLABS_FREE | MiB
    reclaim | for twice as many periods, up to {}: | base/patience.h | MOST | and one
    reclaim | begins to go back after {} periods at the latest | base/patience.h | MOST | twice
    reclaim | If the mark is below a {}th of what is in use | space/purge.c | SHARE |
    shared-contexts | hk_remote_class, up to {} open at a time | shared/send.c | MOST_OPEN |
    shared-contexts | up to {} pointers, 32 KiB | shared/remote.h | HK_BATCH |
    shared-contexts | open at a time │ up to 124 pointers, {} KiB | shared/send.c | CLASS_BYTES | KiB
    shared-contexts | 8 of them │ up to 124 pointers, {} KiB | shared/send.c | BYTES | KiB
    shared-contexts | hk_remote_mixed, {} of them | shared/thread_heap.h | HK_REMOTE_MIXED |
    shared-contexts | if over {} batches wait, see also | shared/send.c | DEEP |
    shared-contexts | If over {} batches wait, B spins | shared/send.c | DEEPER |
    shared-contexts | After a thread has freed {} blocks of a class | shared/send.c | OPENS |
    shared-contexts | out of bitmaps, and {} MiB | shared/transfer.c | FREE_BYTES | MiB
    shared-contexts | from one of the next {} in the list | shared/steal.c | ASKS | word
    shared-contexts | noticed this at least {} ms ago | shared/steal.c | AWAY_NS | ms
    shared-contexts | its 0.25 ms double, up to {} ms | shared/enter.c | PATIENCE_MOST | doubled
    shared-contexts | asks the OS for up to {} owners | shared/steal.c | STEAL_LOOKS |
    shared-contexts | After {} of them it gets a slab | shared/steal.c | MOST |
    shared-contexts | Label sums walk the slabs, {} at a time | shared/enter.c | STEP |
    shared-contexts | follows in steps of {} KiB for each thread | shared/thread_heap.h | HK_HEAP_PUBLISHED | KiB
    address-space | With {} rows (`HK_HOLES_MOST`) | space/space.h | HK_HOLES_MOST |
    profile | fills with up to {} blocks at a time | heap/batch.h | HK_BATCH_MOST |
"""


def text(path):
    return " ".join((SOURCE / path).read_text().replace("\n *", " ").split())


def number(path, pattern):
    return int(re.search(pattern, text(path)).group(1))


def constant(source, name):
    """What the source sets it to: a product, or a shifted number."""
    said = re.search(rf"\b{name} = ([^,;}}/]+)", text(source)).group(1).replace("HK_UNIT", "16384").replace("(size_t)", "")
    first, operator, second = re.fullmatch(r"(\d+)(?: (\*|<<) (\d+))?", said.strip()).groups()
    return int(first) * int(second or 1) if operator != "<<" else int(first) << int(second)


class Constants(unittest.TestCase):
    def test_labels(self):
        most = number("core/include/hakmem/hakmem.h", r"#define HAK_LABELS_MAX (\d+)")
        self.assertEqual(number("docs/internals/labels.md", r"a number from 1 to (\d+) with a name"), most)

    def test_early_huge_pages(self):
        part = PARTS[number("core/src/space/chunks.c", r"EARLY = (\d+)")]
        self.assertRegex(text("docs/internals/allocation.md"), rf"and from an? {part} of that on while chunks are filled")
        self.assertRegex(text("docs/guide/modes.md"), rf"an? {part} of it where a heap grows fast")

    def test_ladder(self):
        head = (SOURCE / "core/src/api/ladder.h").read_text().split("*/")[0]
        headers = "".join(path.read_text() for path in (SOURCE / "core/src").glob("*/*.h"))
        functions = re.findall(r"\bhk_\w+", head)
        self.assertGreater(len(functions), 8)
        for function in functions:
            self.assertRegex(headers, rf"[ *]{function}\([\w ]*hak_ctx \*", function)

    def test_internals(self):
        for row in SAID.strip().splitlines():
            page, phrase, source, name, how = (cell.strip() for cell in row.split("|", 1)[0:1] + row.split(" | ", 1)[1].rsplit(" |", 3))
            with self.subTest(phrase):
                self.assertIn(phrase.format(HOW[how](constant(f"core/src/{source}", name))), text(f"docs/internals/{page}.md"))

    def test_waits_of_locks(self):
        for what, name in ("spins", "SPINS"), ("yields", "YIELDS"):
            said = number("docs/internals/shared-contexts.md", rf"{what} (\d+) times")
            self.assertEqual(said, number("core/src/base/os_lock.c", rf"\b{name} = (\d+)"))

    def test_workload_counted(self):
        table = text("core/src/base/settings.h")
        deep = re.search(r'\(magazine, [^"]*"[^"]*" OR_NONE,[^"]* (\d+), (\d+)\) ', table).groups()
        largest = re.search(r'\(magazine_most, [^"]*"[^"]*" OR_NONE,[^"]* KIB\((\d+)\), KIB\((\d+)\)\) ', table).groups()
        kept, most = re.search(r"balanced and lean keep (\d+) of a size at hand, and none above (\d+) KiB",
                               text("core/include/hakmem/hakmem.h")).groups()
        self.assertEqual((kept, kept, most, most), deep + largest)

    def test_fast(self):
        header = text("core/include/hakmem/hakmem.h")
        said = [float(n) for n in re.search(
            r"(\d+) to (\d+) instructions in a local context, (\d+) to (\d+) in a shared one, (\d+) to (\d+) for an "
            r"allocation where guard pages are drawn. Where a young heap packs its small blocks an allocation takes up "
            r"to (\d+), a free up to (\d+), a realloc in place up to (\d+); in the young heap of a thread an "
            r"allocation and a free take up to (\d+) on average; until 64 blocks were freed, and under a limit below "
            r"384 KiB, an allocation takes (\d+) to (\d+) on average, a free up to (\d+)\. \"constant\" is at most "
            r"(\d+)", header).groups()]
        packed = dict(zip(("alloc", "free", "realloc"), said[6:9]))
        early = {"alloc": said[10:12], "free": (0, said[12])}
        for counts in json.loads((SOURCE / "tests/golden/instructions.json").read_text()).values():
            for name, count in counts.items():
                if name == "context new":
                    low, high = 0, said[13]
                elif re.search("packed (first|limited|grow)", name):
                    low, high = early[name.split()[0]]
                elif "packed shared" in name:
                    low, high = 0, said[9]
                elif "packed" in name:
                    low, high = 0, packed[name.split()[0]]
                else:
                    at = 2 if "shared" in name else 4 if name.startswith("alloc guarded") else 0
                    low, high = said[at:at + 2]
                self.assertTrue(low <= count <= high, f"{name}: {count} is not from {low} to {high}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
