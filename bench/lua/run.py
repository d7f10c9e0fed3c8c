#!/usr/bin/env python3
"""Runs the Lua programs of this folder under several allocators and compares CPU time and peak memory.

Every sample is a fresh process on one CPU. Within a repetition the order of engines, programs and
allocators is shuffled; a figure is the median of the ratios to the runtime's own allocator in the same
repetition. What a program prints must be the same under every allocator.
"""

import random
import sys

import harness
from driver import compare, tool

PROGRAMS = sorted(p.stem for p in (harness.HERE / "programs").glob("*.lua"))
# name of the variant: host that it needs, options of the host
VARIANTS = {
    "builtin": ("builtin", []),
    "hak": ("hak", []),
    "labels": ("hak", ["--labels"]),
    "mimalloc": ("mimalloc", []),
}
BASE = "builtin"


def collect(args, hosts, variants):
    """samples[engine][program][variant] = list of what the repetitions used."""
    samples = {e: {p: {v: [] for v in variants} for p in args.programs} for e in hosts}
    outputs = compare.Outputs()
    progress = tool.Progress(args.n * len(hosts) * len(args.programs) * len(variants))
    order = random.Random(args.seed)
    for _ in range(args.n):
        pairs = [(e, p) for e in hosts for p in args.programs]
        order.shuffle(pairs)
        for engine, program in pairs:
            for variant in order.sample(variants, len(variants)):
                host_name, options = VARIANTS[variant]
                script = harness.HERE / "programs" / f"{program}.lua"
                progress.step(f"{engine} {program} {variant}")
                command = [hosts[engine][host_name], *options, script, args.scale]
                text, used = compare.sample(args.build / "measure", command)
                outputs.check(program, f"under {engine}, {variant},", text)
                samples[engine][program][variant].append(used)
    progress.end()
    return samples


def arguments():
    parser = compare.parser(__doc__, PROGRAMS)
    tool.add_build(parser, "bench/lua", "the hosts were")
    parser.add_argument(
        "--engines", metavar="LIST", help=", ".join(harness.ENGINES) + "; default: all that are built"
    )
    parser.add_argument(
        "--variants",
        metavar="LIST",
        help=", ".join(VARIANTS) + "; default: all that are built; builtin is always run",
    )
    compare.add_arguments(parser, 9, "a tenth")
    return compare.parse(parser, PROGRAMS, 0.1)


def main():
    args = arguments()
    asked = tool.selected(args.variants, VARIANTS, "variant")
    if BASE not in asked:
        asked.insert(0, BASE)
    hosts, left_out = {}, set()
    for engine in tool.selected(args.engines, harness.ENGINES, "engine"):
        found = {h: tool.built(args.build, f"lua_host_{engine}_{h}") for h, _ in VARIANTS.values()}
        if not found[BASE]:
            if args.engines:
                tool.fail(f"{engine}: no lua_host_{engine}_builtin in {args.build}; build it first")
            continue
        hosts[engine] = found
        left_out |= {v for v in asked if not found[VARIANTS[v][0]]}
    if not hosts:
        tool.fail(f"no hosts in {args.build}; build with HAKMEM_BUILD_BENCH=ON or name another --build")
    if args.variants and left_out:
        tool.fail(f"not built in {args.build}: {', '.join(sorted(left_out))}")
    variants = [v for v in asked if v not in left_out]
    if left_out:
        print(f"not built, left out: {', '.join(sorted(left_out))}", file=sys.stderr)

    about = harness.description(tool.pin(args.cpu), hosts, args.build)
    samples = collect(args, hosts, variants)
    compared = {e: compare.Comparison(samples[e], variants, BASE, args.n) for e in samples}
    for engine, comparison in compared.items():
        table = comparison.table(tool.plain_table, 2)
        print(f"{harness.ENGINES[engine]}: ratios to its own allocator, medians of {args.n}\n{table}\n")
    if args.markdown:
        parts = [
            f"{harness.caption(about)} Medians of {args.n} repetitions; "
            "ratios are to the runtime's own allocator."
        ]
        for engine, comparison in compared.items():
            parts.append(f"### {harness.ENGINES[engine]}\n\n{comparison.table(tool.markdown_table, 2)}")
        tool.write_markdown(args.markdown, "\n\n".join(parts))
    if args.json:
        tool.write_json(
            args.json,
            about,
            repetitions=args.n,
            scale=args.scale,
            ratios={engine: comparison.summary() for engine, comparison in compared.items()},
            samples=samples,
        )


if __name__ == "__main__":
    main()
