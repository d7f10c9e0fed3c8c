#!/usr/bin/env python3
"""The demonstration behind scripts/demo: a real program under three allocators, then what hakmem adds."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import harness
from driver import tool
from driver.show import BAR_ROOM, add_build, bar, heading, pages, paint, profile

ROOT = tool.ROOT
LAUNCHERS = {"luajit": "hakluajit", "lua5.4": "haklua5.4"}


class Programs:
    """Where everything of the build is."""

    def __init__(self, build):
        self.bench = build / "bench/lua"
        self.binding = build / "bindings/lua"
        self.measure = self.bench / "measure"
        self.engines = [
            e for e, name in LAUNCHERS.items() if (self.binding / name).exists() and self.own(e).exists()
        ]
        if not self.engines:
            tool.fail(
                f"neither hakluajit nor haklua5.4 in {self.binding}; run scripts/demo, which builds them"
            )

    def own(self, engine):
        return self.bench / f"lua_host_{engine}_builtin"

    def launcher(self, engine, *options):
        return [str(self.binding / LAUNCHERS[engine]), *options]

    def ways(self, engine):
        return {
            "own allocator": [str(self.own(engine))],
            "hakmem": self.launcher(engine, "--hak-labels=off"),
            "hakmem with labels": self.launcher(engine, "--hak-labels=on"),
        }


def run(command, accepted=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode not in accepted:
        tool.fail(f"{' '.join(map(str, command[:4]))}...: exit status {done.returncode}\n{done.stderr}")
    return done


def luacheck_command(most):
    """luacheck and up to `most` Lua sources, its own and those of penlight, as arguments for an interpreter."""
    script = shutil.which("luacheck")
    if not script:
        tool.fail("luacheck is not installed (Debian package lua-check)")
    # Of these two packages alone, so that other packages of the machine change nothing.
    folders = [Path("/usr/share/lua/5.1") / name for name in ("luacheck", "pl")]
    sources = sorted(p for f in folders for p in f.rglob("*.lua"))[:most]
    options = ["--no-config", "--no-cache", "--no-color", "-qqq"]
    return [script, *options, *map(str, sources)], sources


def luacheck_environment():
    # Debian installs luacheck for 5.1 only; it runs on all versions.
    path = "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
    return {**os.environ, "LUA_PATH": path, "LUA_PATH_5_4": path}


def real_program(programs, arguments, sources, repetitions):
    lines = sum(p.read_bytes().count(b"\n") for p in sources)
    heading(
        2,
        f"luacheck (Debian's lua-check) over {len(sources)} files, {lines:,} lines of Lua",
        "one run, one CPU" if repetitions == 1 else f"medians of {repetitions}, one CPU",
    )
    environment = luacheck_environment()
    jobs = [(e, way) for e in programs.engines for way in programs.ways(e)]
    used, verdicts = {job: [] for job in jobs}, set()
    progress = tool.Progress(repetitions * len(jobs))
    for repetition in range(repetitions):
        # The order turns round, so that no way is always the first.
        for job in jobs[repetition % 3 :] + jobs[: repetition % 3]:
            engine, way = job
            progress.step(f"{engine}: {way}")
            with tempfile.NamedTemporaryFile(mode="r") as figures:
                # luacheck ends with 1 or 2 when it has found something.
                done = run(
                    [str(programs.measure), figures.name, *programs.ways(engine)[way], *arguments],
                    (0, 1, 2),
                    env=environment,
                )
                used[job].append(json.load(figures))
            verdicts.add(done.stdout)
    progress.end()
    if len(verdicts) != 1:
        tool.fail("luacheck's output differs between the allocators")
    print(f"   Its verdict, the same in all runs: {verdicts.pop().strip()}\n")
    print(f"   {'':<20}{'CPU s':>7}{'ratio':>7}  {'':<{BAR_ROOM}}{'peak MB':>9}{'ratio':>7}")
    for engine in programs.engines:
        print("   " + paint("4", harness.ENGINES[engine]))
        base = used[(engine, "own allocator")]
        for way in programs.ways(engine):
            runs = used[(engine, way)]
            cpu, base_cpu = (statistics.median(map(tool.cpu, of)) for of in (runs, base))
            peak, base_peak = (statistics.median(r["peak_kb"] for r in of) for of in (runs, base))
            ratio, peak_ratio = cpu / base_cpu, peak / base_peak
            shown = bar(ratio)
            print(
                f"   {way:<20}{cpu:>7.3f}{ratio:>7.2f}  {paint('36', shown)}{'':<{BAR_ROOM - len(shown)}}"
                f"{peak / 1024:>9.1f}{peak_ratio:>7.2f}"
            )


def report(programs, arguments):
    environment = luacheck_environment()
    heading(
        1, "Which part of the interpreter holds the memory, as luacheck ends", "--hak-labels=on --hak-report"
    )
    for engine in programs.engines:
        print("   " + paint("4", harness.ENGINES[engine]))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report"
            options = ["--hak-labels=on", f"--hak-report={file}"]
            run([*programs.launcher(engine, *options), *arguments], (0, 1, 2), env=environment)
            print(file.read_text())


def limit(programs):
    heading(3, "A limit of 16 MiB: an ordinary error, and the state goes on", "examples/lua/limit.lua")
    for engine in programs.engines:
        print("   " + paint("4", harness.ENGINES[engine]))
        done = run([*programs.launcher(engine), str(ROOT / "examples/lua/limit.lua"), "16"])
        for line in done.stdout.splitlines():
            print(f"   {line}")


def trim(programs, count):
    heading(4, f"{count:,} records, all but each 1000th dropped: resident MB", "examples/lua/trim.lua")
    print(f"   {'':<32}{'built':>8}{'collected':>12}{'trimmed':>10}")
    script = [str(ROOT / "examples/lua/trim.lua"), str(count)]
    for engine in programs.engines:
        for way, command in programs.ways(engine).items():
            full, collected, trimmed = run([*command, *script]).stdout.split()
            print(
                f"   {harness.ENGINES[engine] + ', ' + way:<32}{full:>8}{collected:>12}"
                f"{'-' if way == 'own allocator' else trimmed:>10}"
            )


def teardown(programs, count):
    heading(5, f"The end of a state with {count:,} records, best of three", "bench/lua/states.c")
    print(f"   {'':<52}{'heap MB':>8}{'CPU ms':>10}{'left MB':>10}")
    for engine in programs.engines:
        states = str(programs.bench / f"lua_states_{engine}")
        for way, name in (
            ("builtin", "own allocator, lua_close"),
            ("hak-own", "hakmem, lua_close"),
            ("hak-drop", "hakmem, hak_lua_drop"),
            ("hak-drop-huge", "hakmem, hak_lua_drop, huge pages"),
        ):
            runs = [json.loads(run([states, "teardown", way, str(count)]).stdout) for _ in range(3)]
            used = min(runs, key=lambda r: r["end_ms"])
            print(
                f"   {harness.ENGINES[engine] + ': ' + name:<52}{used['full_mb']:>8.0f}"
                f"{used['end_ms']:>10.2f}"
                f"{used['left_mb']:>10.1f}"
            )


def lines(programs, arguments, build):
    """Of Lua 5.4 where it is there: of LuaJIT, compiled code has the line at which its trace begins."""
    engine = programs.engines[-1]
    heading(6, "Which lines of luacheck hold it, a sample each 64 KiB", "--hak-profile=FILE,64K")
    print("   " + paint("4", harness.ENGINES[engine]))
    file = pages(build) / "lua.json"
    options = ["--hak-labels=on", f"--hak-profile={file},64K"]
    run([*programs.launcher(engine, *options), *arguments], (0, 1, 2), env=luacheck_environment())
    profile(build, file, 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_build(parser)
    parser.add_argument(
        "--quick", action="store_true", help="one repetition, 30 files, a tenth of the records"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--figures", action="store_true", help="all parts but the page for a browser")
    only.add_argument("--page", action="store_true", help="the page for a browser alone")
    args = parser.parse_args()
    repetitions, records = (1, 100000) if args.quick else (3, 500000)
    programs = Programs(args.build)
    if args.page:
        lines(programs, luacheck_command(None)[0], args.build)
        return
    about = harness.description(tool.pin(None), programs.engines, programs.bench)
    machine, versions = about["machine"], about["versions"]
    thp = machine["thp"].partition("[")[2].partition("]")[0]
    print(paint("1", "hakmem"), "on", " and ".join(versions[e] for e in programs.engines))
    system = f"Linux {machine['kernel'].split('-')[0]}, huge pages: {thp}"
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, {system}")
    # What takes no measuring comes first: the reader sees figures while the rest runs.
    report(programs, luacheck_command(30 if args.quick else None)[0])
    real_program(programs, *luacheck_command(30 if args.quick else 40), repetitions)
    limit(programs)
    trim(programs, records)
    teardown(programs, records * 4 // 10)
    if not args.figures:
        lines(programs, luacheck_command(30 if args.quick else None)[0], args.build)


if __name__ == "__main__":
    main()
