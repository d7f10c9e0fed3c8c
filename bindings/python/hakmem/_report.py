"""Report files as text, and the difference of two of them."""

import json

from hakmem import _hakmem

SCHEMA = "hakmem-report/1"
DOMAINS = ("raw", "mem", "obj", "arena")
AMOUNTS = {"live_bytes": int, "live_blocks": int}
AMOUNTS_OF_SITE = ("live_bytes", "asked_bytes", "live_blocks")
STATS = """live_bytes big_bytes cached_bytes released_bytes retained_bytes metadata_bytes resident_bytes
    resident_ours_bytes peak_bytes committed_bytes hard_limit failures"""
# Of these stats, those that are not the context's.
PROCESS = ("resident_bytes", "resident_ours_bytes")
# What is read of a report. `...` stands for any key.
SHAPE = {
    "hakmem": str,
    "process": {
        "command": [str],
        "pid": int,
        "parent": int,
        "runtime": {"name": str, "version": str},
        "cpu_seconds": (int, float),
    },
    "memory": {"resident_bytes": int, "peak_resident_bytes": int},
    "contexts": [dict],
}
CONTEXT = {
    "stats": dict.fromkeys((name for name in STATS.split() if name not in PROCESS), int),
    "labels": [{"name": str, **AMOUNTS}],
    "resident_ours_bytes": int,
    "status": dict.fromkeys((*DOMAINS, "why"), str),
    "wrapped": {...: {"allocations": int, "bytes": int}},
}
SITES = [{"frames": [int], "asked_bytes": int, **AMOUNTS}]
FRAMES = [{"function": str}]
NUMBER = (int, float)
STACKS = [
    {
        "id": int,
        "label": str,
        "frames": [int],
        **dict.fromkeys(("live_bytes", "live_bytes_error", "live_blocks", "peak_bytes", "alloc_bytes"), NUMBER),
    }
]
PLACE = {"file": str, "line": int}
PARTS = [{"name": str, "hint": str, "bytes": int}]
MARKS = [{"name": str, "at_ns": int, **dict.fromkeys(("live_bytes", "committed_bytes"), int)}]
IMPORTS = [{"name": str, **dict.fromkeys(("live_bytes", "total_bytes"), NUMBER)}]
VERDICTS = [{"kind": str, "stack": int, "evidence": str, "freed_share": NUMBER, "windows": int}]


def has_shape(value, shape):
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(v, shape[0]) for v in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        keys = value if ... in shape else shape
        return all(k in value and has_shape(value[k], shape.get(k, shape.get(...))) for k in keys)
    # Of numbers, those that a process can have.
    return isinstance(value, shape) and (shape in (str, dict) or 0 <= value < 1 << 64)


def lines_of(context):
    """The exact lines, None if there are none: they are the stacks, where there is no profile."""
    return context.get("lines", context.get("stacks") if "profile" not in context else None)


def load(path, opener=None):
    """A report; ValueError if the file is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=opener) as file:
            text = file.read(1 << 20)
            if text.strip() and not text.lstrip().startswith("{"):
                raise ValueError("it is no object")  # a device has no end
            report = json.loads(text + file.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a report of hakmem ({error})") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise ValueError(f"{path}: not a report of hakmem, or of another version")
    if has_shape(report, SHAPE) and report["process"]["runtime"]["name"] != "python":
        raise ValueError(f"{path}: a report of another runtime; the command `hakmem report` shows it")
    if not is_whole(report):
        raise ValueError(f"{path}: a report of hakmem, but parts of it are not there")
    return report


def is_whole(report):
    if not has_shape(report, SHAPE) or not report["contexts"]:
        return False
    # What C code maps itself may have a context of its own, behind that of the heap.
    context, *others = report["contexts"]
    if [other.get("name") for other in others] not in ([], ["mapped"]):
        return False
    lines = lines_of(context)
    if not has_shape(context, CONTEXT) or not has_shape(lines or [], SITES):
        return False
    return (
        all(map(has_whole_profile, report["contexts"]))
        and has_shape(report["memory"].get("parts", []), PARTS)
        and has_shape(context.get("imports", []), IMPORTS)
        and all(n < len(context.get("frames", [])) for s in lines or [] for n in s["frames"])
        and all(has_shape(s.get("reused_bytes", 0), int) for s in lines or [])
    )


def has_whole_profile(context):
    """Or none."""
    frames = context.get("frames", [])
    stacks = context.get("stacks") if "profile" in context else []
    return (
        has_shape(stacks, STACKS)
        and has_shape(context.get("marks", []), MARKS)
        and has_shape(context.get("verdicts", []), VERDICTS)
        and {v["stack"] for v in context.get("verdicts", [])} <= {s["id"] for s in stacks}
        and has_shape(frames, FRAMES)
        and all(n < len(frames) for s in stacks for n in s["frames"])
        and all(has_shape({"file": "", "line": 0} | frame, PLACE) for frame in frames)
    )


def site_of(line, frames):
    """A line of a report, with its place."""
    frame = frames[line["frames"][0]] if line["frames"] else {}
    place = {"file": frame.get("file", ""), "function": frame.get("function", ""), "line": frame.get("line", 0)}
    return place | {name: line[name] for name in AMOUNTS_OF_SITE} | {"reused_bytes": line.get("reused_bytes", 0)}


def estimate_of(stack, frames):
    """The innermost line of a stack of a profile, with what it says is live."""
    own = (frames[n] for n in stack["frames"] if frames[n].get("kind") != "native")
    frame = next(own, {})
    return {
        "file": frame.get("file", ""),
        "function": frame.get("function", ""),
        "line": frame.get("line", 0),
        **{name: round(stack[name]) for name in AMOUNTS},
    }


def parts(report):
    """What is there of a process under names that need no look at the file's format."""
    process, memory, context = report["process"], report["memory"], report["contexts"][0]
    found = {
        "hakmem": report["hakmem"],
        "python": process["runtime"]["version"],
        **{name: process[name] for name in ("command", "pid", "parent", "cpu_seconds")},
        "peak_resident_bytes": memory["peak_resident_bytes"],
        "parts": memory.get("parts", []),
        **{name: context[name] for name in ("status", "wrapped", "symbols", "mixed") if name in context},
        "stats": {
            **context["stats"],
            "resident_bytes": memory["resident_bytes"],
            "resident_ours_bytes": context["resident_ours_bytes"],
        },
        "labels": {label["name"]: {name: label[name] for name in AMOUNTS} for label in context["labels"]},
    }
    lines = lines_of(context)
    if lines is None and "profile" in context:
        found["estimates"] = [estimate_of(stack, context["frames"]) for stack in context["stacks"]]
    if lines is not None:
        found["sites"] = [site_of(line, context["frames"]) for line in lines]
    return found


def amount(n):
    """Bytes for people; MiB keep two digits so that small changes show."""
    if abs(n) >= 1 << 20:
        return f"{n / (1 << 20):,.2f} MiB"
    return f"{n / 1024:,.1f} KiB" if abs(n) >= 1024 else f"{n} B"


def rows(header, lines):
    """A table: first column to the left, the others to the right."""
    widths = [max(len(str(line[i])) for line in [header, *lines]) for i in range(len(header))]

    def form(line):
        cells = [str(c).rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        return "  " + "  ".join([str(line[0]).ljust(widths[0]), *cells]).rstrip()

    return [form(header), *map(form, lines)]


# What a terminal would not show but do.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "?")


def plain(text):
    """Without what C has no text for, and control characters: names are those of the program."""
    return text.encode("utf-8", "replace").decode().translate(CONTROLS)


def number(n):
    """A line or a process: numbers of files may be any."""
    return min(n, (1 << 31) - 1)


def verdicts(report):
    """What grows in the heap, and then in what C code maps itself, leaks first, a line each."""
    return [line for context in report["contexts"] for line in verdicts_of(context)]


def verdicts_of(context):
    stacks = {stack["id"]: stack for stack in context.get("stacks", ()) if "id" in stack}
    words = {"leak": "LEAK?", "growth": "grows", "filling": "fills"}
    order = list(words)

    def line(verdict):
        stack = stacks[verdict["stack"]]
        place = estimate_of(stack, context["frames"])
        where = f"{place['function']} ({place['file']}:{place['line']})" if place["file"] else place["function"] or "?"
        return f"  {words.get(verdict['kind'], 'grows')}: {where}, {stack['label']}: {verdict['evidence']}"

    def rank(verdict):
        kind = verdict["kind"]
        return order.index(kind) if kind in order else len(order), -verdict.get("bytes_a_window", 0)

    return [plain(line(verdict)) for verdict in sorted(context.get("verdicts", ()), key=rank)]


def imports(report, most=5):
    """What imports hold, the modules with most, a line each."""
    found = sorted(report["contexts"][0].get("imports", ()), key=lambda row: -row["live_bytes"])

    def line(row):
        live, total = (amount(round(row[name])) for name in ("live_bytes", "total_bytes"))
        return f"  import of {row['name']}: {live}" + (f", with its imports {total}" if total != live else "")

    return [plain(line(row)) for row in found[:most] if row["live_bytes"] >= 1 << 16]


def losses(report):
    """What the profile had no room for, a line or none."""
    profile = report["contexts"][0].get("profile", {})
    stacks, samples, lost = (profile.get(f"dropped_{what}", 0) for what in ("stacks", "samples", "bytes"))
    if not stacks and not samples:
        return []
    of = f"; of what was allocated, they had {amount(round(lost))}" if lost else ""
    return [f"  {stacks or samples} {'stacks' if stacks else 'samples'} are missing: the table of the profile was full{of}"]


def text(report):
    """The whole report: first what it cannot tell and what grows."""
    head, empty, rest = body(report).partition("\n\n")
    return "\n".join([head, *losses(report), *verdicts(report), *imports(report)]) + empty + rest


def body(report):
    report = parts(report)
    stats, status = report["stats"], report["status"]
    command = " ".join(report["command"])
    states = [*(status[domain] for domain in DOMAINS), str(status.get("malloc", ""))]
    sites = report.get("sites")
    if sites is not None:
        sites = [
            (plain(s["file"]), plain(s["function"]), number(s["line"]), *(s[amount] for amount in AMOUNTS_OF_SITE), s.get("reused_bytes", 0))
            for s in sites
        ]
    return _hakmem.text(
        tuple(map(plain, (report["hakmem"], command, report["python"], status["why"], *states))),
        (number(report["pid"]), int(report["cpu_seconds"] * 1e6), report["peak_resident_bytes"]),
        tuple(stats[name] for name in STATS.split()),
        [(plain(name), label["live_bytes"], label["live_blocks"]) for name, label in report["labels"].items()],
        sites,
        [
            (DOMAINS.index(domain), count["allocations"], count["bytes"])
            for domain, count in report["wrapped"].items()
            if domain in DOMAINS
        ],
        [(plain(part["name"]), plain(part["hint"]), part["bytes"]) for part in report["parts"]],
    ).rstrip("\n")


def difference(before, after):
    """What changed between two snapshots, the largest change first."""
    lines = rows(
        ("label", "change", "blocks", "now"),
        [
            (plain(d.key), f"{d.size_diff:+,}", f"{d.count_diff:+,}", f"{d.size:,}")
            for d in after.compare_to(before)
            if d.size_diff or d.count_diff
        ],
    )
    for key in ("live_bytes", "peak_bytes", "committed_bytes", "resident_bytes"):
        a, b = before.stats[key], after.stats[key]
        lines.append(f"  {key.removesuffix('_bytes')}: {amount(a)} -> {amount(b)} ({b - a:+,})")
    return "\n".join(lines)
