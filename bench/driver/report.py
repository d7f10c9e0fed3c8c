"""The Markdown table of a run."""

import os

from .figures import BASELINES, METRICS, SHARED, THREADED, contender, is_peer
from .goals import judge


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
    best = {(case, metric.key): figures.best_peer(row, case, metric) for case, metric, _ in columns}
    rows = []
    for name in names:
        cells = [name]
        for case, metric, net in columns:
            text = number(figures.median(row, case, name, metric, net))
            cells.append(f"**{text}**" if name == best[case, metric.key] and not net else text)
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
    "ctx": "Allocators without contexts (glibc, rpmalloc as built here, snmalloc, tcmalloc) free the blocks"
    " one by one; the best peer is chosen among the others.",
    "startup": "glibc, jemalloc and tcmalloc begin before main: see the last column.",
    "latency": "Single operations, timer subtracted; a virtual machine's counter may advance in steps.",
    "larson_threads": "N x C: N threads, C chunks each. CPU time of all threads, with those that made and "
    "ended them; ten lives a lane.",
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
        f" load before the run {machine['load_before']}, {machine['compiler']}, commit {machine['commit']}."
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
        yield f"## Goals: {met} of {len(verdicts)} met\n"
        yield from _table(
            ["row", "goal", "measured", "met"],
            [[*verdict, "yes" if met else "**no**"] for *verdict, met in verdicts],
        )
    yield "## All allocators\n"
    yield "Medians; the best peer in bold; net = less the harness's own cost in the same repetition.\n"
    for row in dict.fromkeys(r for r, _ in cases):
        yield f"### {row}\n"
        if row in NOTES:
            yield NOTES[row] + "\n"
        yield from details(figures, row, [c for r, c in cases if r == row])


BEGIN, END = "<!-- run: begin -->", "<!-- run: end -->"
PLOTS = {
    "rows": "Every row",
    "working-set": "Cost against the working set",
    "contexts": "Cost against live contexts",
    "latency": "Latency",
    "soak-rss": "Resident memory over time",
    "fragmentation": "Fragmentation",
}


def publish(text, plots, document):
    """Replaces the generated part of the document, headings one level down, the plots that exist linked."""
    old = document.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"bench: {document} lacks the marks {BEGIN} and {END}")
    body = "\n".join("#" + line if line.startswith("#") else line for line in text.splitlines())
    pictures = "\n".join(
        f"![{title}]({os.path.relpath(plots / name, document.parent)}.svg)"
        for name, title in PLOTS.items()
        if (plots / f"{name}.svg").exists()
    )
    before, after = old.split(BEGIN)[0], old.split(END)[1]
    document.write_text(f"{before}{BEGIN}\n{body}\n\n### Plots\n\n{pictures}\n{END}{after}")
