"""What the learner does not decide, and what it would gain: tables over eight recorded programs, and some made
workloads.

unbuilt.py --build BUILD/bench/learn [shapes|threshold|classes|quantiles|share]...: all of them by default
  shapes     how far a request is rounded up, with 2 to 32 classes a doubling, at the highest point of the live bytes
  threshold  between runs and big blocks, in six steps: which events it concerns, and what rounding it saves
  classes    of call sites: a sampled profile of the first half against all blocks of the second one, and what
             becomes of large blocks
  quantiles  the policy that is best by a quantile of the windows, by the P2 algorithm, against that by the mean
  share      a trial by 5 % of the contexts against one by whole windows, simulated
"""

import argparse
import bisect
import collections
import json
import math
import os
import random
import struct
import subprocess
import tempfile
from pathlib import Path

import workloads as w

ALLOC, FREE, REALLOC = 0, 1, 2
KiB = 1024


def events_of(path):
    """(op, slot, site, size) of each event."""
    for slot, site, word in struct.iter_unpack("<IIQ", path.read_bytes()):
        yield word >> 56, slot, site, word & (1 << 56) - 1


def peak(path):
    """Sizes of the blocks that live at the highest point, and the number of events."""
    live, sizes, high, at, count = 0, {}, 0, 0, 0
    for op, slot, _, size in events_of(path):
        count += 1
        live += (size if op != FREE else 0) - sizes.get(slot, 0)
        sizes[slot] = size if op != FREE else 0
        if live > high:
            high, at = live, count
    sizes = {}
    for i, (op, slot, _, size) in enumerate(events_of(path)):
        if i == at:
            break
        sizes[slot] = size if op != FREE else 0
    return [s for s in sizes.values() if s], count


def rounded(n, classes):
    """n in the class that it takes: steps of 16 up to 16 times as many classes, then so many a doubling."""
    if n <= 16 * classes:
        return max(16, -(-n // 16) * 16)
    step = max(16, (1 << (n - 1).bit_length() - 1) // classes)
    return -(-n // step) * step


def shapes(traces, _):
    print("\n| program | live, KiB | " + " | ".join(f"{k} a doubling" for k in (2, 4, 8, 16, 32)) + " |\n|---|---:|" + "---:|" * 5)
    for name, path in traces.items():
        sizes, _ = peak(path)
        # Blocks above 1 MiB are whole pages whatever the classes are.
        sizes, all_bytes = [s for s in sizes if s <= 1 << 20], sum(sizes)
        row = []
        for k in (2, 4, 8, 16, 32):
            used = collections.Counter(rounded(s, k) for s in sizes)
            lost = sum(c * n for c, n in used.items()) - sum(sizes)
            # Each class has one slab of 16 KiB that is half free on average.
            half = sum(min(8 * KiB, c * n) for c, n in used.items() if c <= 32 * KiB)
            row.append(f"{lost / all_bytes:.1%} + {half / all_bytes:.1%}")
        print(f"| {name} | {all_bytes // KiB} | " + " | ".join(row) + " |", flush=True)


def threshold(traces, _):
    steps = [32 * KiB << i for i in range(6)]
    print("\n| program | events | " + " | ".join(f"from {s // KiB} KiB" for s in steps) + " |\n|---|---:|" + "---:|" * 6)
    for name, path in traces.items():
        sizes, count = peak(path)
        asked = sorted(s for op, _, _, s in events_of(path) if op != FREE)
        row = []
        for s in steps:
            concerned = len(asked) - bisect.bisect_left(asked, s)
            # Runs have 8 classes a doubling in units of 16 KiB, big blocks have pages.
            saved = sum(-(-rounded(n, 8) // (16 * KiB)) * 16 * KiB - -(-n // 4096) * 4096 for n in sizes if s <= n <= 1 << 20)
            row.append(f"{concerned / count:.3%}, {saved / max(1, sum(sizes)):.1%}")
        print(f"| {name} | {count} | " + " | ".join(row) + " |", flush=True)


CLASSES = ("unknown", "small-frequent", "medium", "large-infrequent")


def class_of(blocks, size, all_blocks, samples):
    """As a profile tells it."""
    if samples < 2:
        return 0
    if size / blocks <= KiB and blocks * 1000 >= all_blocks:
        return 1
    return 3 if size / blocks > 32 * KiB else 2


def classes(traces, _):
    rng = random.Random(1)
    matrix = collections.Counter()
    large = collections.Counter()
    for path in traces.values():
        half = path.stat().st_size // 32
        said, truth = collections.defaultdict(lambda: [0, 0, 0]), collections.defaultdict(lambda: [0, 0])
        left, free, sizes = rng.expovariate(1 / (64 * KiB)), [], {}
        for i, (op, slot, site, size) in enumerate(events_of(path)):
            if op == ALLOC and i < half:
                left -= size
                if left < 0:
                    chance = 1 - math.exp(-size / (64 * KiB))
                    for k, more in enumerate((1 / chance, size / chance, 1)):
                        said[site][k] += more
                    left = rng.expovariate(1 / (64 * KiB))
            elif op == ALLOC:
                truth[site][0] += 1
                truth[site][1] += size
            # Would a large block find one that was freed, as it does in a run's magazine or in the cache?
            if op == ALLOC and size > 32 * KiB:
                at = bisect.bisect_left(free, size)
                found = at < len(free) and free[at] <= 1.25 * size
                large["found" if found else "new"] += 1
                if found:
                    free.pop(at)
            if op == FREE and sizes.get(slot, 0) > 32 * KiB:
                bisect.insort(free, sizes[slot])
            sizes[slot] = size if op != FREE else 0
        total = sum(b for b, _, _ in said.values())
        now = sum(b for b, _ in truth.values())
        for site, (blocks, size) in truth.items():
            inferred = class_of(*said[site][:2], total, said[site][2]) if site in said else 0
            matrix[class_of(blocks, size, now, 2), inferred] += 1
            matrix["blocks", class_of(blocks, size, now, 2), inferred] += blocks
    print("\n| in the second half, sites (blocks) | said: " + " | ".join(CLASSES) + " |\n|---|" + "---:|" * 4)
    for t in (1, 2, 3):
        print(f"| {CLASSES[t]} | " + " | ".join(f"{matrix[t, i]} ({matrix['blocks', t, i]})" for i in range(4)) + " |")
    share = large["found"] / max(1, large.total())
    print(f"\nOf {large.total()} blocks above 32 KiB {share:.0%} find a freed one that is larger by a quarter at most.")


class P2:
    """A quantile in five numbers (Jain and Chlamtac)."""

    def __init__(self, p):
        self.p, self.q, self.n = p, [], [0, 1, 2, 3, 4]
        self.want = [0, 2 * p, 4 * p, 2 + 2 * p, 4]

    def add(self, x):
        q, n = self.q, self.n
        if len(q) < 5:
            bisect.insort(q, x)
            return
        q[0], q[4] = min(q[0], x), max(q[4], x)
        k = min(3, max(0, bisect.bisect_right(q, x) - 1))
        for i in range(k + 1, 5):
            n[i] += 1
        for i, step in enumerate((0, self.p / 2, self.p, (1 + self.p) / 2, 1)):
            self.want[i] += step
        for i in (1, 2, 3):
            d = self.want[i] - n[i]
            if (d >= 1 and n[i + 1] - n[i] > 1) or (d <= -1 and n[i - 1] - n[i] < -1):
                d = 1 if d > 0 else -1
                up = (q[i + 1] - q[i]) / (n[i + 1] - n[i])
                down = (q[i] - q[i - 1]) / (n[i] - n[i - 1])
                new = q[i] + d / (n[i + 1] - n[i - 1]) * ((n[i] - n[i - 1] + d) * up + (n[i + 1] - n[i] - d) * down)
                if not q[i - 1] < new < q[i + 1]:
                    new = q[i] + d * (q[i + d] - q[i]) / (n[i + d] - n[i])
                q[i], n[i] = new, n[i] + d

    def value(self):
        return self.q[int(self.p * (len(self.q) - 1))] if len(self.q) < 5 else self.q[2]


POLICIES = ("default", "fast", "lean", "retained 128M", "huge_from 1M", "magazine 128")


def quantiles(traces, args):
    print("\n| workload | best by the mean | by p50 | by p95 | by p99 | the worst of these, to the best mean |\n|---|---|---|---|---|---:|")
    others = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in [*(n for n in w.MADE if n in ("mix10k", "mixed-big", "waves20", "fragments", "requests", "queue")), *traces]:
            costs = {}
            for policy in POLICIES:
                file = w.policy_file(Path(folder), policy, 10**9)
                out = subprocess.run([args.build / "learn-replay", "--fault-ns=2000", f"--every={w.EVENTS_A_WINDOW // 10}", "--policy", file, f"{traces.get(name, name)}:40"],
                                     capture_output=True, text=True, check=True).stdout
                windows = [x for x in map(json.loads, out.splitlines()) if x.get("events")]
                # What is held costs 0.005 % of the time for a MiB; an event takes some 40 ns.
                costs[policy] = [x["ns"] / x["events"] + 0.00005 * x["held"] / 2**20 * 40 for x in windows]
            best = {}
            for how in ("mean", 0.5, 0.95, 0.99):
                value = {}
                for policy, all_costs in costs.items():
                    if how == "mean":
                        value[policy] = sum(all_costs) / len(all_costs)
                        continue
                    estimate = P2(how)
                    for c in all_costs:
                        estimate.add(c)
                    value[policy] = estimate.value()
                best[how] = min(value, key=value.get)
                if how == "mean":
                    means = value
            worst = max(means[p] for p in best.values()) / means[best["mean"]] - 1 if means[best["mean"]] else 0
            others += worst > 0.03
            print(f"| {name} | {best['mean']} | {best[0.5]} | {best[0.95]} | {best[0.99]} | {worst:+.1%} |", flush=True)
    print(f"\nBy quantiles another policy is chosen, with a mean that is worse by more than 3 %, on {others} workloads.")


def share(_, args):
    """Contexts until a candidate that is better by 8 % is known to be so with three standard errors, and the regret of a
    candidate that is worse by 8 %, in costs of a context. `drift`: how much whole windows differ from each other."""
    rng = random.Random(1)
    print("\n| contexts a window | they differ by | windows differ by | windows, in turn | windows, 5 % | lost in turn | lost, 5 % |\n|---:|---:|---:|---:|---:|---:|---:|")
    for contexts in (20, 200, 2000):
        for own, drift in ((0.3, 0.02), (0.3, 0.2), (1.0, 0.02), (1.0, 0.2)):
            results = {"turn": [], "share": []}
            for _ in range(60):
                for how, found in results.items():
                    differences = []
                    while len(differences) < 4000:
                        level = 1 + rng.gauss(0, drift)
                        next_level = 1 + rng.gauss(0, drift) if how == "turn" else level
                        trial = max(1, contexts // 20) if how == "share" else contexts
                        others = contexts - trial if how == "share" else contexts
                        differences.append(next_level * (1.08 + rng.gauss(0, own / trial**0.5)) - level * (1 + rng.gauss(0, own / others**0.5)))
                        n = len(differences)
                        mean = sum(differences) / n
                        error = (sum((d - mean) ** 2 for d in differences) / n / max(1, n - 1)) ** 0.5
                        if n >= 3 and abs(mean) > 3 * error:
                            break
                    found.append((len(differences) * (2 if how == "turn" else 1), len(differences) * 0.08 * trial))
            row = [sum(x[i] for x in results[how]) / 60 for i in (0, 1) for how in ("turn", "share")]
            print(f"| {contexts} | {own:.0%} | {drift:.0%} | " + " | ".join(f"{x:.1f}" for x in row) + " |", flush=True)


TABLES = {f.__name__: f for f in (shapes, threshold, classes, quantiles, share)}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench unbuilt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    args = parser.parse_args()
    folder = args.build / "traces-sites"
    folder.mkdir(exist_ok=True)
    os.environ["HAK_RECORD_SITES"] = "1"
    asked = args.tables or list(TABLES)
    traces = {name: w.record(args.build, folder, name) for name in w.RECORDED} if set(asked) - {"share"} else {}
    for name in asked:
        TABLES[name](traces, args)


if __name__ == "__main__":
    main()
