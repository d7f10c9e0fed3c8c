"""From samples to figures: medians, ratios within a repetition, confidence intervals."""

from collections import defaultdict
from dataclasses import dataclass

import numpy

BASELINES = ("null", "null-labels")
LABELLED = "hak-labels"


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    net: bool = False  # also published net of the harness's own cost
    higher: bool = False  # more is better
    divide: float = 1


CPU = Metric("cpu_ns", "ns/op", net=True)
BLOCK_CPU = Metric("cpu_ns", "ns/op")  # touching the blocks is nearly all of it
RSS = Metric("rss_mib", "resident MiB")
FAULTS = Metric("faults_per_op", "faults/op")
CALLS = Metric("syscalls_per_op", "system calls/op")
PEAK = Metric("peak_mib", "peak MiB")

# What is published of each row; the first is what allocators are compared by.
METRICS = {
    "random_mixed": [CPU, RSS],
    "tiny_hot": [CPU],
    "larson": [CPU, RSS],
    "mid": [CPU, RSS],
    "battle": [
        Metric("bytes_per_object", "bytes/object"),
        Metric("after_free_kib", "KiB after free"),
        Metric("after_trim_kib", "KiB after trim"),
        BLOCK_CPU,
    ],
    "json64K": [BLOCK_CPU, FAULTS, CALLS],
    "mir512K": [BLOCK_CPU, FAULTS, CALLS],
    "vm2M": [BLOCK_CPU, FAULTS, CALLS],
    "mixed": [BLOCK_CPU, FAULTS, CALLS],
    "same": [BLOCK_CPU, FAULTS, CALLS],
    "recur": [BLOCK_CPU, FAULTS, CALLS],
    "fragmentation": [
        BLOCK_CPU,
        Metric("peak_ratio", "peak/live"),
        Metric("trough_mib", "mean MiB after freeing"),
        Metric("end_mib", "MiB at the end"),
    ],
    "realloc": [CPU, FAULTS],
    "cold_realloc": [CPU, FAULTS],
    "cold_big": [BLOCK_CPU, FAULTS],
    "cold_heap": [CPU, RSS, FAULTS],
    "latency": [
        Metric("p99_ns", "p99 ns"),
        Metric("p50_ns", "p50 ns"),
        Metric("p95_ns", "p95 ns"),
        Metric("p99_9_ns", "p99.9 ns"),
        Metric("max_ns", "max us", divide=1000),
    ],
    "ctx": [
        Metric("cpu_ns", "us/context", net=True, divide=1000),
        Metric("kib_per_ctx", "KiB/context"),
        FAULTS,
    ],
    "ctx_defined": [Metric("cpu_ns", "us/context", divide=1000)],
    "young": [CPU],
    "startup": [Metric("first_us", "us"), Metric("first_kib", "KiB"), Metric("start_kib", "KiB before main")],
    "larson_threads": [CPU, RSS],
    "larson_untold": [CPU, RSS],
    "mid_threads": [CPU, RSS],
    "xmalloc": [CPU, PEAK],
    "chain": [CPU, PEAK],
    "churn": [Metric("cpu_ns", "us/thread", net=True, divide=1000), PEAK],
    "soak": [
        Metric("mops", "M ops/CPU s", higher=True),
        Metric("cv_percent", "variation %"),
        Metric("rss_drift_percent", "RSS drift %"),
        RSS,
        CALLS,
        FAULTS,
    ],
}


# Rows of several threads on one heap, and which of hakmem's variants run them.
THREADED = ("larson_threads", "larson_untold", "mid_threads", "xmalloc", "chain", "churn")
SHARED = ("hak-shared-tls", "hak-shared")
# What a shared context costs one thread.
BESIDE_LOCAL = ("random_mixed", "tiny_hot")
# What the mode fast is for: a start from nothing.
FAST = "hak-fast"
COLD = ("cold_realloc", "cold_big", "cold_heap")


def runs(allocator, row):
    """Whether a row means anything for an allocator."""
    if allocator in SHARED:
        return row in THREADED + BESIDE_LOCAL
    if allocator == FAST:
        return row in COLD
    if row == "ctx_defined":
        return allocator == "hak"
    return row not in THREADED or not allocator.startswith("hak") and allocator != "null-labels"


def contender(row):
    """The variant of hakmem that a row's summary speaks of."""
    return SHARED[0] if row in THREADED else "hak"


def baseline_of(allocator):
    return "null-labels" if allocator == LABELLED else "null"


def is_peer(allocator):
    return allocator not in BASELINES and not allocator.startswith("hak")


class Figures:
    """The samples of a run by row, case, allocator, metric and repetition."""

    def __init__(self, run):
        self._values = defaultdict(dict)
        self._errors = {}
        sampled = {(s["row"], s["case"]) for s in run["samples"]}
        listed = [c for c in run["cases"] if (c["row"], c["case"]) in sampled]
        self.cases = [(c["row"], c["case"]) for c in listed if not c["curve"]]
        # (case, number that it varies) of the rows that are measured over a range
        self.ranges = defaultdict(list)
        for c in listed:
            self.ranges[c["row"]].append((c["case"], c["a"]))
        for s in run["samples"]:
            where = (s["row"], s["case"], s["allocator"])
            if "error" in s:
                self._errors[where] = s["error"]
                continue
            for key, value in s.items():
                if isinstance(value, (int, float)) and key != "rep":
                    self._values[(*where, key)][s["rep"]] = value
        for c in run["system_calls"]:
            self._values[c["row"], c["case"], c["allocator"], CALLS.key] = {0: c["per_op"]}

    def allocators(self, row, case):
        return list(dict.fromkeys(a for r, c, a, _ in self._values if (r, c) == (row, case)))

    def errors(self, row):
        """(case, allocator, why) of the samples that failed."""
        return [(case, allocator, why) for (r, case, allocator), why in self._errors.items() if r == row]

    def by_rep(self, row, case, allocator, metric, net=False):
        values = self._values.get((row, case, allocator, metric.key), {})
        if net:
            base = self._values.get((row, case, baseline_of(allocator), metric.key), {})
            values = {rep: v - base[rep] for rep, v in values.items() if rep in base}
        return {rep: v / metric.divide for rep, v in values.items()}

    def median(self, row, case, allocator, metric, net=False):
        values = list(self.by_rep(row, case, allocator, metric, net).values())
        return float(numpy.median(values)) if values else None

    def has_contexts(self, row, case, allocator):
        return any(self._values.get((row, case, allocator, "has_ctx"), {}).values())

    def best_peer(self, row, case, metric):
        """The peer with the best median; in the row ctx among those that have contexts."""
        medians = {
            a: self.median(row, case, a, metric)
            for a in self.allocators(row, case)
            if is_peer(a) and (row != "ctx" or self.has_contexts(row, case, a))
        }
        medians = {a: v for a, v in medians.items() if v is not None}
        if not medians:
            return None
        return (max if metric.higher else min)(medians, key=medians.get)

    def advantage(self, row, case, allocator, other, metric, net=False):
        """How many times better than `other`: median over repetitions of the ratio, and its 95 % interval."""
        mine = self.by_rep(row, case, allocator, metric, net)
        theirs = self.by_rep(row, case, other, metric, net)
        ratios = [
            (mine[rep] / theirs[rep] if metric.higher else theirs[rep] / mine[rep])
            for rep in mine
            if rep in theirs and mine[rep] > 0 and theirs[rep] > 0
        ]
        return bootstrap(ratios) if ratios else None


def bootstrap(ratios, draws=2000):
    """(median, low, high): the interval by resampling the repetitions."""
    values = numpy.asarray(ratios)
    draw = numpy.random.default_rng(1).choice(values, (draws, len(values)))
    low, high = numpy.percentile(numpy.median(draw, axis=1), [2.5, 97.5])
    return float(numpy.median(values)), float(low), float(high)
