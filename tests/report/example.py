"""Reports made by hand and by rule, for the tests of the command."""

import random


def stack(number, frames, label, live, peak=0, alloc=0, error=0):
    return {
        "id": number,
        "label": label,
        "frames": frames,
        "samples": 1,
        "live_samples": 1,
        "alloc_blocks": alloc // 100,
        "alloc_bytes": alloc,
        "live_blocks": live // 100,
        "live_bytes": live,
        "live_bytes_error": error,
        "peak_blocks": peak // 100,
        "peak_bytes": peak,
    }


def report():
    """Two contexts, one with a profile; names that need care."""
    frames = [
        {"function": "parse", "file": "a;b.lua", "line": 12, "kind": "interpreter"},
        {"function": "main chunk", "file": "a;b.lua", "line": 90, "kind": "interpreter"},
        {"function": "malloc", "module": "/usr/lib/libc.so.6", "kind": "native"},
        {"function": "</script><b>&\x1b[31m", "kind": "native"},
    ]
    stacks = [
        stack(1, [2, 0, 1], "table", 4_000_000, 4_500_000, 9_000_000, 500_000),
        stack(2, [2, 1], "string", 300_000.75, 100, 700_000),
        stack(3, [3], "unlabelled", 0, 0, 5_000_000),
    ]
    labels = [("table", 4_000_000, 40_000), ("string", 300_000, 3_000)]
    return {
        "schema": "hakmem-report/1",
        "hakmem": "0.1.0",
        "process": {
            "command": ["lua", "a.lua", "\x1b]0;x"],
            "pid": 71,
            "parent": 1,
            "runtime": {"name": "lua", "version": "5.4.4"},
            "time": 1_795_427_000,
            "now_ns": 9_000_000_000,
        },
        "memory": {"resident_bytes": 9437184, "peak_resident_bytes": 12582912, "anonymous_bytes": 6291456},
        "contexts": [
            {
                "name": 'lua "x"\n',
                "stats": {
                    "live_bytes": 4_300_000,
                    "live_blocks": 43_000,
                    "peak_bytes": 5_000_000,
                    "committed_bytes": 6_000_000,
                    "hard_limit": 18446744073709551615,
                    "failures": 3,
                },
                "labels": [{"name": n, "live_bytes": b, "live_blocks": c} for n, b, c in labels],
                "profile": {"mode": "sampled", "mean_bytes": 524288, "dropped_stacks": 7},
                "stacks": stacks,
                "frames": frames,
                "marks": [{"name": "request 17", "at_ns": 3_000_000_000}],
                "timeline": [
                    {
                        "at_ns": i * 1_000_000_000,
                        "live_bytes": 1_000_000 * i,
                        "committed_bytes": 1_200_000 * i,
                        "resident_bytes": 2_000_000 + 1_300_000 * i,
                    }
                    for i in range(1, 9)
                ],
                "decisions": [
                    {
                        "window": window,
                        "at_ns": window * 1_000_000_000,
                        "kind": kind,
                        "phase": phase,
                        "number": "retained_bytes",
                        "from": 32 << 20,
                        "to": 64 << 20,
                        "expected": 1.02,
                        "observed": 1.01,
                        "text": f"{kind}s retained_bytes <at> 64 MiB",
                    }
                    for window, kind, phase in ((4, "try", "learning"), (6, "keep", "learning"), (8, "freeze", "frozen"))
                ],
                "verdicts": [
                    {"kind": "growth", "stack": 2, "evidence": "grew a little", "bytes_a_window": 9e6},
                    {"kind": "leak", "stack": 1, "evidence": "grew in 9 of 9 windows", "bytes_a_window": 1e3},
                    {"kind": "growth", "stack": 3, "evidence": "grew a lot", "bytes_a_window": 1e7},
                ],
            },
            {
                "name": "tenant",
                "stats": dict.fromkeys(("live_bytes", "live_blocks", "peak_bytes", "committed_bytes"), 16),
            },
            {"name": "tenant", "labels": []},
        ],
    }


def many(count):
    """A report of so many different stacks, the same each time."""
    rng = random.Random(7)
    frames = [
        {"function": f"function_{i}", "file": f"module_{i % 97}.py", "line": i + 1, "kind": "interpreter"}
        for i in range(4000)
    ]
    labels = ["dict", "list", "string", "code", "array"]
    stacks = []
    for i in range(count):
        depth = rng.randint(5, 25)
        outer = [rng.randrange(20 << min(level, 7)) for level in range(depth)]
        live = rng.randrange(100, 1_000_000)
        stacks.append(stack(i, outer[::-1], rng.choice(labels), live, live * 2, live * 3))
    whole = report()
    total = sum(s["live_bytes"] for s in stacks)
    context = whole["contexts"][0]
    context |= {"name": "many", "stacks": stacks, "frames": frames, "verdicts": [], "labels": []}
    context["stats"]["live_bytes"] = total
    whole["contexts"] = [context]
    return whole


def resident():
    """The example with the parts of its memory, and with what its blocks keep from going back."""
    made = report()
    made["memory"]["parts"] = [
        {"kind": "live", "name": "live: table", "bytes": 4 << 20, "hint": "a profile names their lines"},
        {"kind": "live", "name": "live: string", "bytes": 1 << 20, "hint": "a profile names their lines"},
        {"kind": "between", "name": "free between live blocks", "bytes": 2 << 20, "hint": "held by the blocks beside"},
        {"kind": "file", "name": "lib<b>\x1b[31m.so", "bytes": 1 << 19, "hint": "code"},
        {"kind": "of the future", "name": "other", "bytes": 1 << 19},
    ]
    context = made["contexts"][0]
    context["holes"] = [
        {"block_bytes": 48, "blocks": 10, "free_bytes": 1000, "pinned_bytes": 0},
        {"block_bytes": 64, "blocks": 900, "free_bytes": 3 << 20, "pinned_bytes": 2 << 20},
        {"block_bytes": 96, "blocks": 70, "free_bytes": 1 << 18, "pinned_bytes": 1 << 17},
    ]
    context["stacks"][0]["pinned_bytes"] = (2 << 20) + 0.5
    context["stacks"][1]["pinned_bytes"] = 1 << 16
    return made


def windows():
    """The example of a program in Python with windows: a leak from the third one on, imports, and many small lines."""
    made = report()
    context = made["contexts"][0]
    for what in ("timeline", "decisions"):
        del context[what]
    context["name"] = "python"
    context["frames"] = [
        {"function": "keep", "file": "app.py", "line": 7, "kind": "interpreter"},
        {"function": "<module>", "file": "app.py", "line": 90, "kind": "interpreter"},
        {"function": "malloc", "module": "/usr/lib/libc.so.6", "kind": "native"},
        {"function": "get_data", "file": "<frozen importlib._bootstrap_external>", "line": 3, "kind": "interpreter"},
        *({"function": f"small_{i}", "file": "app.py", "line": 100 + i, "kind": "interpreter"} for i in range(3000)),
        {"function": "import json", "kind": "interpreter"},
        {"function": "import json.decoder", "kind": "interpreter"},
    ]
    context["stacks"] = [
        stack(1, [2, 0, 1], "dict", 4_000_000, 4_000_000, 9_000_000),
        stack(2, [3, 3005, 3, 3004, 1], "code", 2_000_000, 2_000_000, 2_000_000),
        *(stack(3 + i, [4 + i, 1], "list", 1000, 1000, 1000) for i in range(3000)),
    ]
    context["profile"] = {"mode": "exact", "started_ns": 10**9, "dropped_stacks": 3, "dropped_bytes": 5 << 20}
    context["imports"] = [
        {"name": "json", "live_bytes": 0, "live_blocks": 0, "total_bytes": 2_000_000},
        {"name": "json.decoder", "live_bytes": 2_000_000, "live_blocks": 10, "total_bytes": 2_000_000},
    ]
    context["marks"] = [
        {"name": "", "at_ns": (1 + i) * 10**9, "live_bytes": i << 20, "committed_bytes": i << 21} for i in range(1, 6)
    ]
    grown = [0, 0, 1_000_000, 2_000_000, 3_000_000]
    context["histories"] = [
        {"stack": 1, "live": grown, "allocated": [0, 0, 2_000_000, 2_000_000, 2_000_000, 3_000_000],
         "kept": [0, 0, 1_000_000, 1_000_000, 1_000_000, 1_000_000]},
        {"stack": 2, "live": [2_000_000] * 5, "allocated": [2_000_000, 0, 0, 0, 0, 0], "kept": [2_000_000, 0, 0, 0, 0, 0]},
    ]
    context["verdicts"] = [{"kind": "leak", "stack": 1, "evidence": "grew", "bytes_a_window": 1e6}]
    return made
