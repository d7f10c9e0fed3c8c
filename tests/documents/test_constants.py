"""Numbers in documents and headers that sources or golden counts decide: test_constants.py SOURCE"""

import json
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
PARTS = {2: "half", 4: "quarter", 8: "eighth", 16: "sixteenth"}
WORDS = {2: "two", 3: "three", 4: "four", 8: "eight", 9: "nine", 10: "ten"}
# How a page says a number.
HOW = {
    "": lambda n: f"{n:,}",
    "word": lambda n: WORDS[n],
    "word and one": lambda n: WORDS[n + 1],
    "but one": lambda n: f"{n - 1}",
    "percent": lambda n: f"{n * 100:g}",
    "s": lambda n: f"{n / 1000:g}",  # from milliseconds
    "us": lambda n: f"{n / 1000:g}",  # from nanoseconds
    "decimal": lambda n: f"{n:g}",
    "of a second": lambda n: {1000: ""}[n],
    "of a minute": lambda n: {60000: ""}[n],
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
    allocation | Below {} MiB such a magazine has | heap/account.h | HK_SLABS_FREE | MiB
    allocation | such a magazine has {} slots at first | heap/packed.c | SLOTS | word
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
    reclaim | In the last quarter of a limit below {} MiB | heap/account.h | HK_SLABS_FREE | MiB
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
# The same for pages of docs/guide (or headers below core/include/hakmem), and sources of any folder.
GUIDES = """
    learning | better by {} % in each of | core/src/learn/bandit.c | margin | percent
    learning | % in each of {} windows, and undoes | core/src/learn/bandit.h | HK_BANDIT_TRIES | word
    learning | grows by a quarter in each of {} windows | core/src/learn/learn.c | GREW | word
    learning | expected to go on so for {} more | core/src/learn/learn.c | AHEAD | word
    learning | After each {} windows a | core/src/learn/learn.c | CANARY_EACH |
    learning | at most {} where costs vary | core/src/learn/bandit.h | HK_BANDIT_LONG | word and one
    learning | otherwise, by {} % of the time and | core/src/learn/learn.c | dear_from | percent
    learning | of the time and {} standard deviations | core/src/learn/learn.c | dear_spreads | word
    learning | at {} ns each | core/src/learn/learn.c | exchange_ns |
    learning | looks at the heap some {} times | core/src/api/learner.c | LOOKS | word
    learning | keeps its last {} decisions | core/include/hakmem/learn.h | HAK_LEARNER_DECISIONS |
    learning | and up to {} windows from all | core/include/hakmem/learn.h | HAK_LEARNER_WINDOWS |
    learning | (a price of {} or more) | bindings/common/memory.h | HKC_PRICE_DEAR_FROM |
    learn.h | if it saves {} % of the cost above 1 | core/src/learn/bandit.c | margin | percent
    learn.h | of the cost above 1 in each of {} windows | core/src/learn/bandit.h | HK_BANDIT_TRIES | word
    learn.h | the mean of {} windows decides | core/src/learn/bandit.h | HK_BANDIT_LONG | word
    learn.h | magazines ({} ns each) | core/src/learn/learn.c | exchange_ns |
    learn.h | grew by a quarter in each of {} windows | core/src/learn/learn.c | GREW | word
    learn.h | expects the same growth for {} more | core/src/learn/learn.c | AHEAD | word
    learn.h | once at least {} contexts ended | core/src/api/learner.c | ENDED | word
    learn.h | than the {} us that the slab saves | core/src/api/learner.c | slab_saves_ns | us
    learn.h | after every {} windows a CANARY | core/src/learn/learn.c | CANARY_EACH |
    learn.h | sum to {} more than is usual | core/src/learn/learn.c | strange_from | decimal
    learn.h | more than {} % of the time and four | core/src/learn/learn.c | dear_from | percent
    learn.h | A window has {} looks | core/src/api/learner.c | LOOKS | word
    policy | shown in reports, up to {} bytes | core/include/hakmem/policy.h | HAK_POLICY_NAME_MOST |
    policy | a policy remembers {} such steps | core/include/hakmem/policy.h | HAK_UNDONE_MOST |
    policy | millionths of the time, 1 to {} | core/include/hakmem/policy.h | HAK_PRICE_MOST | plain
    policy | are prices of 5, {} and 1000 | core/include/hakmem/policy.h | HAK_PRICE_NORMAL |
    policy | prices of {}, 50 and 1000 | core/include/hakmem/policy.h | HAK_PRICE_CHEAP |
    policy | prices of 5, 50 and {} | core/include/hakmem/policy.h | HAK_PRICE_DEAR | plain
    policy | fills a chunk in less than {} ms | core/src/space/chunks.c | FAST_NS | ms
    profile | Growth by less than {} bytes | core/src/profile/growth.c | LEAK_LEAST |
    profile | needs at least {} windows | core/src/profile/growth.c | POINTS_LEAST | but one
    profile | if the windows took {} seconds or more | core/src/profile/growth.c | TOLD_SECONDS | word
    profile | There are at most {} such windows | core/src/profile/profile.h | HK_WINDOWS_TIMED |
    profile.h | There are at most {} such windows | core/src/profile/profile.h | HK_WINDOWS_TIMED |
    misuse | holds the last {} freed blocks | core/src/heap/asked.h | HK_HELD_MOST |
    hakmem.h | CHECK too; the last {} freed blocks | core/src/heap/asked.h | HK_HELD_MOST |
    tokens | {} tokens have labels of their own | core/include/hakmem/token.h | HAK_TOKEN_LABELS |
    tokens | pages of its own after {} allocations | bindings/preload/src/token_slots.c | FIRST_MISSES |
    report | gives no answer within {} seconds | bindings/report/src/source.h | HKR_SOURCE_SECONDS |
    report | whole report within {} seconds | bindings/report/src/source.h | HKR_SOURCE_SECONDS |
    report | is enough, up to {} processes | bindings/report/src/fleet.h | HKR_FLEET_MOST |
    report | The server keeps {} connections open | bindings/report/src/serve.c | CONNECTIONS |
    report | one that stands still for {} seconds | bindings/report/src/serve.c | PATIENCE |
    report | once a second at most | bindings/report/src/fleet.h | HKR_FLEET_FRESH | of a second
    report | and for a minute one | bindings/report/src/fleet.h | HKR_FLEET_SILENT | of a minute
    report | mangled that is longer than {} bytes | bindings/report/src/names.c | MANGLED_MOST | plain
    report | would be longer than {} KiB | bindings/report/src/names.h | HKR_NAME | KiB
    report | names of a report have taken {} s | bindings/report/src/names.h | HKR_NAMES_SECONDS |
    report | or {} MiB, it leaves all others | bindings/report/src/names.h | HKR_NAMES_BYTES | MiB
    report | delays other viewers by at most {} seconds | bindings/common/live.c | SEND_MILLISECONDS | s
    report | Stacks with less than a {}th of what lives | bindings/common/history_json.c | SHARE |
    report | when up to {} windows of the profile began | bindings/report/src/window_table.h | HKR_WINDOWS | word
    report | or a quarter of at least {} stacks end | bindings/report/src/wrapper.c | STACKS_LEAST |
    report | stacks end in it, with {} callers | bindings/report/src/wrapper.c | CALLERS_LEAST | word
    preload | at most {} of them; with `abort` | bindings/preload/src/report.h | HKS_MISUSE_LINES |
    preload | of that descriptor, numbered {} or above | bindings/common/stream.c | HIGH_FD |
    preload | with status {} before its program | bindings/preload/src/settings.h | HKS_STATUS |
    python | of that descriptor, numbered {} or above | bindings/common/stream.c | HIGH_FD |
    python | is kept for blocks of up to {} bytes | bindings/python/heap/heap.c | SMALL | plain
    python-profile | A stack has at most {} Python functions | bindings/python/profile/profile.c | DEPTH |
    python-profile | After {} names the rest are `(other threads)` | bindings/python/profile/few.h | HKP_FEW | but one
    python-profile | After {} names the rest are `task (others)` | bindings/python/profile/few.h | HKP_FEW | but one
    lua | Above a soft limit ({} % of the hard one | bindings/lua/src/limit.c | SOFT_PERCENT |
    lua | committed memory after each {}th of the limit | bindings/lua/src/limit.c | LOOK_PART |
    lua | returns the old one) reads {} | bindings/lua/src/limit.c | HURRIED_STEPMUL | plain
    lua | handler of the error: a {}nd of the hard limit | bindings/lua/src/limit.c | PART |
    lua | in steps of {} KiB, 64 KiB at most | bindings/lua/src/limit.c | UNIT | KiB
    lua | in steps of 16 KiB, {} KiB at most | bindings/lua/src/limit.c | MOST | KiB
    lua | **twice what it is plus {} MiB** | bindings/lua/src/close.c | ROOM | MiB
    wasm | Each of {} groups of threads has a list | bindings/wasm-host/src/slot.h | HKW_SHARDS |
    wasm | If it has {} or more slots that belong | bindings/wasm-host/src/slot.c | LOOKED_AT | word
    wasm | At most {} MiB of these pages stays | bindings/wasm-host/src/slot.c | TAIL_MOST | MiB
    wasm | At most {} contexts wait for each | bindings/wasm-host/src/spare.c | SPARES |
    wasm | of threads, each of at most {} MiB | bindings/wasm-host/src/spare.c | SPARE_BYTES | MiB
    wasmtime | `HAK_WASMTIME_MEMORIES` ({}) | bindings/wasm-host/wasmtime/include/hakmem/wasm_wasmtime.h | HAK_WASMTIME_MEMORIES |
    wasmtime | Every {} ms, one of wasmtime's epochs | examples/wasm-server/engine.c | TICK_MS |
    wasmtime | in the guest's memory has {} KiB | examples/wasm-server/engine.c | SCRIPT_STACK | KiB
    wasmtime | same calls, {} MiB of the thread's | examples/wasm-server/guest.h | GUEST_STACK | MiB
    wasmtime | The latest {} versions stay | examples/wasm-server/scripts.h | SCRIPTS_VERSIONS |
    wasmtime | and a customer has {} scripts | examples/wasm-server/scripts.h | SCRIPTS_OF_CUSTOMER |
    wasmtime | {} KiB and 1,000 lines are kept | examples/wasm-server/console.c | BYTES_MOST | KiB
    wasmtime | KiB and {} lines are kept | examples/wasm-server/console.c | LINES_MOST |
    wasmtime | a script over {} KiB | examples/wasm-server/http.c | SCRIPT_MOST | KiB
    wasmtime | A chunked body of more than {} MiB | examples/wasm-server/http.c | BODY_MOST | MiB
    wasmtime | read and forgotten, up to {} MiB | examples/wasm-server/http.c | DRAIN_MOST | MiB
    wasmtime | a token has {} to 256 characters | examples/wasm-server/tokens.c | TOKEN_LEAST |
    wasmtime | a token has 16 to {} characters | examples/wasm-server/tokens.c | TOKEN_MOST |
    wasmtime | gives scripts {} seconds | examples/wasm-server/server.c | GRACE_MS | s
    wasmtime | gives clients up to {} seconds | examples/wasm-server/server.c | ANSWER_MS | s
    wasmtime | Each customer has up to {} guests | examples/wasm-server/customers.c | IDLE_MOST | word
"""


def text(path):
    return " ".join((SOURCE / path).read_text().replace("\n *", " ").split())


def number(path, pattern):
    return int(re.search(pattern, text(path)).group(1))


def constant(source, name):
    """What the source sets it to: a product, or a shifted number."""
    said = re.search(rf"(?:\b{name} = |#define {name} )([^,;}}/#]+)", text(source)).group(1).replace("HK_UNIT", "16384").replace("(size_t)", "")
    first, operator, second = re.match(r"([\d.]+)(?: (\*|<<) (\d+))?", said.strip()).groups()
    if "." in first:
        return float(first)
    return int(first) * int(second or 1) if operator != "<<" else int(first) << int(second)


def rows(table):
    """Page, phrase, source, constant and how it is said."""
    for row in table.strip().splitlines():
        yield [cell.strip() for cell in row.split("|", 1)[0:1] + row.split(" | ", 1)[1].rsplit(" |", 3)]


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
        for page, phrase, source, name, how in rows(SAID):
            with self.subTest(phrase):
                self.assertIn(phrase.format(HOW[how](constant(f"core/src/{source}", name))), text(f"docs/internals/{page}.md"))

    def test_guides_and_headers(self):
        for page, phrase, source, name, how in rows(GUIDES):
            with self.subTest(f"{page}: {phrase}"):
                where = f"core/include/hakmem/{page}" if page.endswith(".h") else f"docs/guide/{page}.md"
                value = constant(source, name)
                self.assertIn(phrase.format(value if how == "plain" else HOW[how](value)), text(where))

    def test_instructions_of_guard_pages(self):
        golden = json.loads((SOURCE / "tests/golden/instructions.json").read_text())["GNU 12"]
        page = text("docs/guide/misuse.md")
        for row, kind in ("plain", "small"), ("`HAK_DEBUG_GUARD`", "guarded small"), ("sampled profile", "profiled small"):
            counts = [round(golden[f"{call} {kind}"]) for call in ("alloc", "free")]
            self.assertRegex(page, rf"\| {row} +\| {counts[0]} +\| {counts[1]} +\|")

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
        sampled = float(re.search(r"with a live sampled block, up to (\d+) on average where",
                                  text("core/include/hakmem/profile.h"))[1])
        for counts in json.loads((SOURCE / "tests/golden/instructions.json").read_text()).values():
            for name, count in counts.items():
                if name == "context new":
                    low, high = 0, said[13]
                elif re.search("packed (first|limited|grow)", name):
                    low, high = early[name.split()[0]]
                elif name == "free sweep sampled":
                    low, high = 0, sampled
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
