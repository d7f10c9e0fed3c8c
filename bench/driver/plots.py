"""SVG plots of a run."""

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as pyplot  # noqa: E402

from .figures import BASELINES, METRICS  # noqa: E402

matplotlib.rcParams.update({"svg.hashsalt": "hakmem", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})

COLOURS = {
    "hak": "#c1121f",
    "hak-sized": "#e5676f",
    "hak-labels": "#7b2cbf",
    "hak-debug": "#b8a1c9",
    "hak-inline": "#ff6d00",
    "hak-fast": "#d00070",
    "hak-shared": "#f28482",
    "hak-shared-tls": "#9d0208",
    "glibc": "#6c757d",
    "mimalloc3": "#0077b6",
    "mimalloc2": "#48cae4",
    "jemalloc": "#2a9d8f",
    "tcmalloc": "#e9a23b",
    "snmalloc": "#6a994e",
    "rpmalloc": "#8d5524",
    "null": "#000000",
}
IN_CURVES = [
    a
    for a in COLOURS
    if a not in ("hak-debug", "hak-sized", "hak-inline", "hak-fast", "hak-shared", "hak-shared-tls")
]


def _save(figure, directory, name):
    figure.tight_layout()
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
    pyplot.close(figure)


def overview(rows, path):
    """The rows of the first page, one a line: how many times the best figure each allocator takes.

    rows: (label, {allocator: times the best, 1 or more}), the first at the top.
    """
    shown = [a for a in COLOURS if any(a in times for _, times in rows)]
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axis = pyplot.subplots(figsize=(9, 0.36 * len(rows) + 1.3))
        for name in shown:
            own = name == "hak"
            at = [(times[name], y) for y, (_, times) in enumerate(rows) if name in times]
            axis.scatter(
                [x for x, _ in at],
                [y for _, y in at],
                s=150 if own else 34,
                marker="D" if own else "o",
                color=COLOURS[name],
                label="hakmem" if own else name,
                zorder=2 if own else 3,
                clip_on=False,
            )
        axis.set_xscale("log")
        axis.set_xlim(0.9, 100)
        axis.set_xticks([1, 2, 5, 10, 20, 50, 100], ["best", "2x", "5x", "10x", "20x", "50x", "100x+"])
        axis.minorticks_off()
        axis.set_yticks(range(len(rows)), [label for label, _ in rows])
        axis.invert_yaxis()
        axis.legend(
            loc="upper center", bbox_to_anchor=(0.3, -0.06), ncols=4, fontsize=8, frameon=False,
            markerscale=0.75, labelspacing=0.9,  # so that the large mark lies on no other
        )
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        pyplot.close(figure)


def bars(figures, directory):
    """Each case: the row's first metric of all allocators, null as a line."""
    cases, columns = figures.cases, 4
    lines = -(-len(cases) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(16, 2.6 * lines), squeeze=False)
    for axis in axes.flat[len(cases) :]:
        axis.set_axis_off()
    for axis, (row, case) in zip(axes.flat, cases, strict=False):
        metric = METRICS[row][0]
        known = {a: figures.median(row, case, a, metric) for a in COLOURS if a not in BASELINES}
        known = {a: v for a, v in known.items() if v is not None}
        axis.bar(range(len(known)), known.values(), color=[COLOURS[a] for a in known])
        axis.set_xticks(range(len(known)), known, rotation=60, ha="right", fontsize=7)
        base = figures.median(row, case, "null", metric)
        if metric.net and base is not None:
            axis.axhline(base, color="black", linewidth=0.8, linestyle=":")
        if known and max(known.values()) > 30 * max(min(known.values()), 1e-9):
            axis.set_yscale("log")
        axis.set_title(f"{row} {case}: {metric.title}", fontsize=9)
    _save(figure, directory, "rows")


def _lines(directory, name, title, xlabel, ylabel, series, log=True):
    if not any(len(xs) > 1 for xs, _ in series.values()):
        return
    figure, axis = pyplot.subplots(figsize=(8, 5))
    for allocator, (xs, ys) in series.items():
        axis.plot(
            xs,
            ys,
            marker="." if len(xs) < 40 else "",
            label=allocator,
            color=COLOURS[allocator],
            linewidth=2 if allocator.startswith("hak") else 1.2,
            linestyle=":" if allocator == "null" else "-",
        )
    if log:
        axis.set_xscale("log")
        axis.set_yscale("log")
    axis.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axis.legend(fontsize=8, ncol=2)
    _save(figure, directory, name)


def _over_range(figures, row, without=()):
    """Medians of the row's first metric over the cases that differ in one number."""
    series, metric = {}, METRICS[row][0]
    sizes = [s for s in figures.ranges[row] if s[0] not in without]
    for allocator in IN_CURVES:
        points = [(size, figures.median(row, case, allocator, metric)) for case, size in sizes]
        points = sorted(p for p in points if p[1] is not None)
        if points:
            series[allocator] = tuple(zip(*points, strict=True))
    return series


def _last_sample(samples, row, case, allocator, keys):
    found = [
        s for s in samples if (s["row"], s["case"], s["allocator"]) == (row, case, allocator) and keys[0] in s
    ]
    return [found[-1][k] for k in keys] if found else None


def all_plots(run, figures, directory):
    samples = run["samples"]
    bars(figures, directory)
    _lines(
        directory,
        "working-set",
        "random_mixed: cost against the working set",
        "slots (half of them full)",
        "CPU ns per operation",
        _over_range(figures, "random_mixed"),
    )
    _lines(
        directory,
        "contexts",
        "ctx: cost against the number of live contexts (20 blocks each)",
        "contexts alive",
        "CPU us per context made and destroyed",
        _over_range(figures, "ctx", ("blocks1000",)),
    )
    latency, soak, filled = {}, {}, {}
    for allocator in IN_CURVES:
        found = _last_sample(samples, "latency", "ws10k", allocator, ["quantiles", "quantile_ns"])
        if found:
            beyond = [1 / max(1 - q, 1e-7) for q in found[0]]
            latency[allocator] = (beyond, [max(v, 1) for v in found[1]])
        found = _last_sample(samples, "soak", "steady", allocator, ["rss_series_mib", "wall_ns", "ops"])
        if found and allocator != "null":
            step = found[1] * found[2] / 1e9 / len(found[0])
            soak[allocator] = ([step * (i + 1) for i in range(len(found[0]))], found[0])
        found = _last_sample(samples, "fragmentation", "trim", allocator, ["filled_mib", "trough_series_mib"])
        if found and allocator != "null":
            steps = [v for pair in zip(*found, strict=True) for v in pair]
            filled[allocator] = ([i / 2 for i in range(len(steps))], steps)
    _lines(directory, "latency", "latency: one operation in N takes at least", "N", "ns", latency)
    _lines(directory, "soak-rss", "soak: resident memory", "seconds", "MiB", soak, log=False)
    _lines(
        directory,
        "fragmentation",
        "fragmentation: resident memory, filled to 48 MiB (n) and after freeing 90 % and a trim (n.5)",
        "phase",
        "MiB",
        filled,
        log=False,
    )
