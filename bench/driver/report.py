"""The Markdown table of a run."""

import os

from .figures import BASELINES, METRICS, SHARED, THREADED, contender, is_peer
from .goals import judge
from .machine import publishable


def number(value):
    if value is None:
        return "-"
    if value and abs(value) < 0.001:
        return f"{value:.1e}"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.3g}"


def _table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _advantage(figures, row, case, allocator, other, metric, net=False):
    found = figures.advantage(row, case, allocator, other, metric, net)
    return f"{found[0]:.2f} ({found[1]:.2f}..{found[2]:.2f})" if found else "-"


def summary(figures, cases):
    """One line a case: hakmem beside the best peer, by the row's first metric."""
    alone = [c for c in cases if c[0] not in THREADED]
    threaded = [c for c in cases if c[0] in THREADED]
    yield from _summary(
        figures,
        alone,
        ("hak", "hak-sized", "hak-labels"),
        (("hak", False), ("hak-labels", False), ("hak", True)),
    )
    yield from _summary(
        figures, threaded, SHARED, ((SHARED[0], False), (SHARED[1], False), (SHARED[0], True))
    )


def _summary(figures, cases, names, compared):
    rows = []
    for row, case in cases:
        metric = METRICS[row][0]
        best = figures.best_peer(row, case, metric)
        cells = [
            f"{row} {case}",
            metric.title,
            number(figures.median(row, case, "null", metric)),
            f"{best} {number(figures.median(row, case, best, metric))}" if best else "-",
        ]
        cells += [number(figures.median(row, case, a, metric)) for a in names]
        for allocator, net in compared:
            known = best and (metric.net or not net)
            cells.append(_advantage(figures, row, case, allocator, best, metric, net) if known else "-")
        rows.append(cells)
    if rows:
        yield from _table(
            [
                "row",
                "unit",
                "null",
                "best peer",
                *names,
                *(f"{a} / best{', net' if net else ''}" for a, net in compared),
            ],
            rows,
        )


def standing(figures, cases):
    """Wins and losses by the row's first metric, unlabelled hakmem against the best peer."""
    lists = {"Behind": [], "Level (the interval holds 1)": [], "Ahead": []}
    for row, case in cases:
        metric = METRICS[row][0]
        best = figures.best_peer(row, case, metric)
        found = figures.advantage(row, case, contender(row), best, metric) if best else None
        if found:
            kind = "Behind" if found[2] < 1 else "Ahead" if found[1] > 1 else "Level (the interval holds 1)"
            lists[kind].append((found[0], f"{row} {case} {found[0]:.2f} ({best})"))
    for kind, entries in lists.items():
        yield f"- {kind}: {', '.join(text for _, text in sorted(entries)) or 'none'}."
    yield ""


def details(figures, row, cases):
    """All allocators of a row: one column a case and metric."""
    columns = [
        (case, metric, net)
        for case in cases
        for metric in METRICS[row]
        for net in (False, True)
        if not net or metric.net
    ]
    names = list(dict.fromkeys(a for case in cases for a in figures.allocators(row, case)))
    columns = [c for c in columns if any(figures.median(row, c[0], a, c[1], c[2]) is not None for a in names)]
    names.sort(key=lambda a: (a not in BASELINES, is_peer(a), a))
    best = {}
    for case, metric, net in columns:
        known = [figures.median(row, case, n, metric, net) for n in names if n not in BASELINES]
        known = [v for v in known if v is not None]
        best[case, metric.key, net] = number((max if metric.higher else min)(known)) if known else None
    rows = []
    for name in names:
        cells = [name]
        for case, metric, net in columns:
            text = number(figures.median(row, case, name, metric, net))
            won = name not in BASELINES and not net and text == best[case, metric.key, net]
            cells.append(f"**{text}**" if won else text)
        rows.append(cells)
    yield from _table(["allocator"] + [f"{c} {m.title}{' net' if n else ''}" for c, m, n in columns], rows)
    errors = [e for e in figures.errors(row) if e[0] in cases]
    for case, name, why in errors:
        yield f"- {name}, {case}: {why}"
    if errors:
        yield ""


NOTES = {
    "battle": "16-byte blocks. After trim: all blocks freed, and the allocator asked to give memory back.",
    "fragmentation": "The case trim asks the allocator after each phase to give memory back, and counts"
    " that time; snmalloc has no such call, that of rpmalloc does little.",
    "cold_realloc": "Nothing was warm: the first allocation is in these figures. hak-fast is the mode fast.",
    "young": "hakmem has a new context for each 3000 operations. The others' heap is that of the process, and warm.",
    "ctx": "Allocators without contexts (glibc, rpmalloc as built here, snmalloc, tcmalloc) free the blocks"
    " one by one; the best peer is chosen among the others.",
    "startup": "glibc, jemalloc and tcmalloc begin before main: see the last column.",
    "latency": "Single operations, timer subtracted; a virtual machine's counter may advance in steps.",
    "larson_threads": "N x C: N threads, C chunks each. CPU time of all threads, with those that made and "
    "ended them; ten lives a lane.",
    "larson_untold": "A hundred lives a lane, and hakmem is not told when one ends (hak_ctx_thread_done).",
    "ctx_defined": "No other allocator has labels; the row ctx has what a context without them costs.",
    "xmalloc": "Half of the threads allocate, the others free, by batches of 4096.",
    "chain": "Four threads, each frees half of what comes and puts as much in its place; the last frees all.",
    "churn": "Threads that live for 200 blocks and leave 50 to the next; net of making a thread.",
    "soak": "One sample. Throughput against CPU time, variation over 480 windows.",
}


def markdown(run, figures):
    cases = figures.cases
    machine = run["machine"]
    yield (
        f"Run of {run['date']}: `{run['command']}`, {run['settings']['repetitions']} repetitions, CPU "
        f"{run['settings']['cpu']}, {run['seconds'] / 60:.0f} minutes. {machine['cpu']},"
        f" {machine['cpus']} CPUs ({machine['hypervisor']}), {machine['distribution']}, Linux"
        f" {machine['kernel']}, transparent huge pages: {machine['transparent_huge_pages']},"
        f" load before the run {machine['load_before']}, {machine['compiler']}, commit {commit_of(run)}."
    )
    yield ""
    yield from _table(
        ["allocator", "version"],
        [[name, version] for name, version in run["versions"].items()]
        + [[name, f"missing: {why}"] for name, why in run["missing"].items()],
    )
    yield "## hakmem beside the best peer\n"
    yield "Ratios above 1: hakmem is better. Median over repetitions of the ratio within one, 95 % interval."
    yield ""
    yield from standing(figures, cases)
    yield from summary(figures, cases)
    verdicts = judge(figures)
    if verdicts:
        met = sum(1 for v in verdicts if v[3])
        yield f"## Goals: {met} of {len(verdicts)} met, all but these\n"
        yield from _table(["row", "goal", "measured"], [verdict for *verdict, met in verdicts if not met])
    yield "## All allocators\n"
    yield "Medians; the best figure in bold; net = less the harness's own cost in the same repetition.\n"
    for row in dict.fromkeys(r for r, _ in cases):
        yield f"### {row}\n"
        if row in NOTES:
            yield NOTES[row] + "\n"
        yield from details(figures, row, [c for r, c in cases if r == row])


# The rows of the first page of measurements: row, case, key of the metric, what is done.
CHOSEN = (
    ("random_mixed", "ws10k", "cpu_ns", "malloc and free of 16 to 1024 bytes, 10,000 slots"),
    ("random_mixed", "ws1M", "rss_mib", "resident memory of the same with 1,000,000 slots"),
    ("larson", "chunks10000", "cpu_ns", "replace one of 10,000 chunks of 8 to 1024 bytes"),
    ("battle", "1M", "bytes_per_object", "memory of 1,000,000 objects of 16 bytes"),
    ("mixed", "held4", "cpu_ns", "replace one of four blocks of 64 KiB to 2 MiB, touched"),
    ("realloc", "x1.5", "cpu_ns", "buffers that grow by half up to 1 MiB, a step"),
    ("fragmentation", "live48M", "cpu_ns", "fill to 48 MiB, free 90 %, again"),
    ("fragmentation", "live48M", "peak_ratio", "the peak of the same, times what is live"),
    ("ctx", "blocks20", "cpu_ns", "a heap with 20 blocks, from creation to end"),
    ("ctx", "blocks1000", "cpu_ns", "a heap with 1,000 blocks, from creation to end"),
    ("larson_threads", "4x10000", "cpu_ns", "larson by 4 lanes of threads that take over from others"),
    ("xmalloc", "2to2", "cpu_ns", "two threads allocate, two others free"),
    ("latency", "ws10k", "p99_ns", "99th percentile of single calls"),
    ("soak", "steady", "mops", "a steady mix of 16 bytes to 1 MiB"),
)
PEERS = ("glibc", "mimalloc3", "mimalloc2", "jemalloc", "tcmalloc", "snmalloc", "rpmalloc")


def _chosen(run, figures):
    """What is done, the metric, the medians of hakmem and its peers, row and case, where there are any."""
    for row, case, key, what in CHOSEN:
        metric = next(m for m in METRICS[row] if m.key == key)
        names = [contender(row), *(a for a in PEERS if a in run["versions"])]
        values = {a: figures.median(row, case, a, metric) for a in names}
        if any(v is not None for v in values.values()):
            yield what, metric, values, row, case


def chosen(run, figures):
    """The table of the first page: hakmem and every peer, the winner in bold, whoever it is."""
    rows, names = [], [a for a in PEERS if a in run["versions"]]
    for what, metric, values, row, case in _chosen(run, figures):
        known = [v for v in values.values() if v is not None]
        best = number(max(known) if metric.higher else min(known))
        cells = [number(v) for v in values.values()]
        rows.append([what, metric.title, *(f"**{c}**" if c == best else c for c in cells), f"`{row}/{case}`"])
    yield from _table(["", "unit", "hakmem", *names, "row"], rows)
    yield origin(run)


def against_the_best(run, figures):
    """The same as (what is done, {allocator: times the best figure}), hakmem's contender as `hak`."""
    for what, metric, values, _, _ in _chosen(run, figures):
        known = {("hak" if a.startswith("hak") else a): v for a, v in values.items() if v}
        best = max(known.values()) if metric.higher else min(known.values())
        yield what, {a: min(best / v if metric.higher else v / best, 100) for a, v in known.items()}


def commit_of(run):
    commit = run["machine"]["commit"]
    return commit if publishable(commit) else f"{commit} (the tree had changes that were not committed)"


def origin(run):
    """When, from which commit and on what a run was measured."""
    machine = run["machine"]
    return (
        f"Measured {run['date']}, commit {commit_of(run)}, by `{run['command']}` on {machine['cpu']}, "
        f"{machine['cpus']} CPUs, Linux {machine['kernel']}, {machine['compiler']}."
    )


BEGIN, END = "<!-- run: begin -->", "<!-- run: end -->"
PLOTS = {
    "rows": "Every row",
    "working-set": "Cost against the working set",
    "contexts": "Cost against live contexts",
    "latency": "Latency",
    "soak-rss": "Resident memory over time",
    "fragmentation": "Fragmentation",
}


def publish(run, figures, plots, folder):
    """Writes core.md in the folder, and the table between the marks of its README.md."""
    page = folder / "core.md"
    pictures = "\n".join(
        f"![{title}]({os.path.relpath(plots / name, folder)}.svg)"
        for name, title in PLOTS.items()
        if (plots / f"{name}.svg").exists()
    )
    head = (
        "# The core beside other allocators\n\n"
        "Written by `scripts/bench`; changes by hand are lost. What the rows do and how they are measured: "
        "[method](README.md#method).\n"
    )
    page.write_text("\n".join([head, *markdown(run, figures)]) + f"\n## Plots\n\n{pictures}\n")
    first = folder / "README.md"
    old = first.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"bench: {first} lacks the marks {BEGIN} and {END}")
    before, after = old.split(BEGIN)[0], old.split(END)[1]
    table = "\n".join(chosen(run, figures))
    first.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
