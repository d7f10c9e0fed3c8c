"""What the rows are meant to reach, judged on the medians of one run."""

from .figures import CALLS, COLD, FAST, FAULTS, METRICS, PEAK, RSS, SHARED, Metric

BIG = (("vm2M", "2M"), ("json64K", "64K"), ("mir512K", "512K"), ("mixed", "held4"))
RECUR = (("same", "2.4M"), ("same", "16M"), ("recur", "turn"), ("recur", "list"))


def _metric(row, key):
    return next(m for m in METRICS[row] if m.key == key)


class Judge:
    """Collects (row, goal, measured, met). met is None where something was not measured."""

    def __init__(self, figures):
        self.figures = figures
        self.verdicts = []

    def at_most(self, row, case, allocator, metric, limit, text=None, net=False):
        value = self.figures.median(row, case, allocator, metric, net)
        if value is None:
            return
        title = text or f"{allocator}: {metric.title} <= {limit:g}"
        self.verdicts.append((f"{row} {case}", title, f"{value:.4g}", value <= limit))

    def against(self, row, case, allocator, others, metric, factor, net=False):
        """allocator is at least `factor` times as good as the best of `others` (None: all peers)."""
        known = {
            o: self.figures.median(row, case, o, metric, net)
            for o in (others or [self.figures.best_peer(row, case, metric)])
            if o
        }
        known = {o: v for o, v in known.items() if v is not None}
        if not known:
            return
        other = (max if metric.higher else min)(known, key=known.get)
        found = self.figures.advantage(row, case, allocator, other, metric, net)
        if found:
            kind = ", net of the harness" if net else ""
            goal = f"{allocator}: {metric.title} >= {factor:g}x as good as {other}{kind}"
            measured = f"{found[0]:.2f}x ({found[1]:.2f}..{found[2]:.2f})"
            self.verdicts.append((f"{row} {case}", goal, measured, found[0] >= factor))


def judge(figures):
    j = Judge(figures)
    cpu = METRICS["random_mixed"][0]
    j.against("random_mixed", "ws400", "hak", ["mimalloc3"], cpu, 1.5, net=True)
    j.against("random_mixed", "ws400", "hak-labels", ["mimalloc3"], cpu, 1.25, net=True)
    j.against("random_mixed", "ws400", "hak-inline", ["mimalloc3"], cpu, 2, net=True)
    for case in ("ws10k", "ws1M"):
        j.against("random_mixed", case, "hak-labels", None, cpu, 1)
    j.against("random_mixed", "ws1M", "hak", None, RSS, 1)
    j.against("tiny_hot", "batch100", "hak-labels", ["snmalloc"], cpu, 1)
    for row, case in (("larson", "chunks1024"), ("larson", "chunks10000"), ("mid", "slots256")):
        j.against(row, case, "hak", ["tcmalloc", "rpmalloc"], cpu, 1)
    per_object, trimmed = METRICS["battle"][0], METRICS["battle"][2]
    for case in ("100K", "500K", "1M", "2M", "5M"):
        j.at_most("battle", case, "hak", per_object, 16.30 if case == "100K" else 16.10)
        j.at_most("battle", case, "hak-labels", per_object, 16.6)
        j.at_most("battle", case, "hak", trimmed, 64)
    for row, case in BIG + RECUR:
        j.at_most(row, case, "hak", FAULTS, 0.0005, "hak: no page faults in steady state")
        j.at_most(row, case, "hak", CALLS, 0.0005, "hak: no system calls in steady state")
    for row, case in BIG:
        j.against(row, case, "hak", ["mimalloc2"], cpu, 1.2)
    j.at_most("fragmentation", "trim", "hak", _metric("fragmentation", "peak_ratio"), 1.5)
    j.against("fragmentation", "live48M", "hak", None, cpu, 1)
    for case in ("x1.5", "plus64"):
        j.against("realloc", case, "hak", ["snmalloc"], cpu, 1)
    for row, case in j.figures.cases:
        if row in COLD:
            j.against(row, case, FAST, ["mimalloc3"], METRICS[row][0], 1)
    j.against("cold_heap", "390M", "hak", ["mimalloc3"], RSS, 1)
    us, kib = METRICS["ctx"][0], METRICS["ctx"][1]
    for allocator in ("hak", "hak-labels"):
        j.at_most("ctx", "blocks20", allocator, us, 0.25)
        j.at_most("ctx", "blocks1000", allocator, us, 6)
        j.at_most("ctx", "live10000", allocator, kib, 8)
    j.at_most("ctx_defined", "blocks20", "hak", METRICS["ctx_defined"][0], 0.35)
    j.at_most("startup", "mapping", "hak", METRICS["startup"][0], 15)
    j.at_most("startup", "mapping", "hak", METRICS["startup"][1], 16)
    j.at_most("startup", "buffer", "hak", METRICS["startup"][0], 8)
    j.against("latency", "ws10k", "hak", ["tcmalloc"], _metric("latency", "p99_ns"), 1)
    j.against("latency", "ws10k", "hak", None, _metric("latency", "p99_9_ns"), 1)
    j.against("latency", "ws10k", "hak", None, _metric("latency", "max_ns"), 1)
    _labels(j)
    _threads(j, cpu)
    j.at_most("soak", "steady", "hak", Metric("rss_drift_percent", "RSS drift %"), 0.5)
    j.against("soak", "steady", "hak", None, _metric("soak", "cv_percent"), 1)
    j.at_most("soak", "steady", "hak", CALLS, 1e-6)
    return j.verdicts


def _threads(j, cpu):
    """Both ways to reach a shared context; without a thread-local variable of its own and with one."""
    for allocator in SHARED:
        for case in ("ws400", "ws10k", "ws1M"):
            j.against("random_mixed", case, allocator, ["hak"], cpu, 1 / 1.15)
        for threads in (1, 2, 4):
            j.against("larson_threads", f"{threads}x10000", allocator, ["tcmalloc"], cpu, 1)
            j.against("larson_threads", f"{threads}x1024", allocator, ["mimalloc2", "rpmalloc"], cpu, 1)
            for chunks in (1024, 10000):
                if allocator == SHARED[0]:
                    j.against("larson_untold", f"{threads}x{chunks}", allocator, None, cpu, 1 / 1.05)
            j.against("mid_threads", f"{threads}x256", allocator, ["tcmalloc"], cpu, 1)
            for row, case in (
                ("larson_threads", "10000"),
                ("larson_threads", "1024"),
                ("mid_threads", "256"),
            ):
                j.against(row, f"{threads}x{case}", allocator, None, RSS, 1)
        j.against("xmalloc", "1to1", allocator, ["rpmalloc"], cpu, 1.5)
        for row, case in (("xmalloc", "1to1"), ("xmalloc", "2to2"), ("chain", "4"), ("churn", "10000")):
            j.against(row, case, allocator, None, PEAK, 1)


def _labels(j):
    """Labels cost at most 5 % of a row."""
    for row, case in j.figures.cases:
        metric = METRICS[row][0]
        if metric.key == "cpu_ns" and row != "ctx":
            j.against(row, case, "hak-labels", ["hak"], metric, 0.95)
