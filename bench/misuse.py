#!/usr/bin/env python3
"""What each allocator notices of mistakes (bench/src/mistakes.c), and what it costs, as two tables in Markdown.

hakmem by its own functions, each with a debug option; glibc, hardened_malloc and mimalloc's secure mode by LD_PRELOAD,
built here from the packages of Rust that carry their sources. scripts/misuse runs it."""

import argparse
import os
import re
import subprocess
from pathlib import Path

KINDS = [
    "write 1 past the end", "write 64 past the end", "write 16 before", "write 64 before",
    "write 64 around 300 blocks", "write a page past a large one", "read 64 past the end",
    "write after the free", "read after the free", "read of a large one after the free",
    "second free at once", "second free after 50 others", "second free of a block in use again",
    "second free of a large one", "free of a pointer into a block", "free of a pointer to the stack",
    "contents of a freed block in a new one", "a freed block is the next one",
    "the next address can be told",
]
HAK = [("plain", 0), ("guard", 8), ("check", 1), ("poison", 2), ("canary", 16), ("quarantine", 32), ("trace", 64),
       ("random", 256), ("all but guard", 370)]
CRATES = {"hardened-malloc-sys": "16.0.2026071503", "libmimalloc-sys": "0.1.49"}
LANES = 5  # runs of each mistake: placement at random may hide one


def vendored(build):
    folder = build / "misuse"
    if not (folder / "vendor").exists():
        (folder / "src").mkdir(parents=True, exist_ok=True)
        (folder / "src/lib.rs").write_text("")
        needs = "".join(f'{name} = "={version}"\n' for name, version in CRATES.items())
        (folder / "Cargo.toml").write_text(
            '[package]\nname = "peers"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n' + needs)
        subprocess.run(["cargo", "vendor", "--quiet", "--versioned-dirs", "vendor"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
    return {name: folder / "vendor" / f"{name}-{version}" for name, version in CRATES.items()}


def shared_library(out, sources, flags):
    subprocess.run(["gcc", "-O3", "-fPIC", "-shared", "-w", "-D_GNU_SOURCE", "-DNDEBUG", *flags, *map(str, sources), "-o",
                    str(out), "-lpthread"], check=True)
    return str(out)


def peers(build):
    crates = vendored(build)
    crate = crates["hardened-malloc-sys"]
    hardened = crate / "vendor/hardened-malloc"
    numbers = re.findall(r"^\w+=\w+$", (crate / "config-default.conf").read_text(), re.MULTILINE)
    mimalloc = crates["libmimalloc-sys"] / "c_src/mimalloc/v3"
    headers = [word for name in ("stdalign.h", "stdbool.h", "assert.h") for word in ("-include", name)]

    def hardened_as(name, settings):
        return shared_library(
            build / f"misuse/lib{name}.so", sorted(hardened.glob("*.c")),
            ["-std=gnu2x", "-fvisibility=hidden", *headers, *("-D" + n for n in settings), f"-I{hardened}",
             f"-I{hardened}/include"])

    # As it comes it reserves more addresses than valgrind has.
    small = [re.sub("CLASS_REGION_SIZE=.*", "CLASS_REGION_SIZE=67108864", re.sub("N_ARENA=.*", "N_ARENA=1", n))
             for n in numbers]
    secure = shared_library(
        build / "misuse/libmimalloc.so", [mimalloc / "src/static.c"],
        ["-DMI_SECURE=4", "-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT",
         "-ftls-model=initial-exec", f"-I{mimalloc}/include"])
    return [
        ("glibc", "", ""),
        ("hardened_malloc", hardened_as("hardened", numbers), hardened_as("hardened-small", small)),
        ("mimalloc, secure", secure, secure),
    ]


def surroundings(preload):
    """mimalloc says nothing of what it notices unless it is told to."""
    return dict(os.environ, LD_PRELOAD=preload, MIMALLOC_SHOW_ERRORS="1") if preload else None


def verdict(program, mode, preload, kind):
    done = subprocess.run([program, mode, kind], env=surroundings(preload), capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout.split("\n")
    noticed = done.returncode != 0 or "mimalloc: error" in done.stderr
    for answer in ("old contents", "other contents", "yes", "no"):
        if answer in said and not noticed:
            return answer
    if "not again" in said and not noticed:
        return "prevented"
    if not noticed:
        return "no"
    if done.returncode == 0:
        return "told, went on"
    if "freed" in said:
        return "later"
    if "made" in said:
        return "at the free"
    return "at once"


def verdicts(program, mode, preload, kind):
    """Of some runs; where they differ, how many noticed it."""
    all_of = [verdict(program, mode, preload, kind) for _ in range(LANES)]
    return all_of[0] if len(set(all_of)) == 1 else ", ".join(f"{all_of.count(v)}x {v}" for v in sorted(set(all_of)))


def cost(program, mode, preload, counted):
    """Instructions of a free and an allocation among 10,000 blocks, and resident KiB of these."""
    def collected(n):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, mode, "work", str(n)],
            env=surroundings(counted), capture_output=True, text=True, check=True)
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))

    few, many = collected(20000), collected(60000)
    out = subprocess.run([program, mode, "work", "300000"], env=surroundings(preload), capture_output=True, text=True,
                         check=True).stdout
    return (many - few) / 40000, int(re.search(r"Anonymous:\s+(\d+)", out).group(1))


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="a build folder with core/libhakmem.a")
    args = parser.parse_args()
    build = args.build.resolve()
    root = Path(__file__).resolve().parent.parent
    (build / "misuse").mkdir(parents=True, exist_ok=True)
    program = str(build / "misuse/mistakes")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{root}/core/include",
                    str(root / "bench/src/mistakes.c"), str(build / "core/libhakmem.a"), "-o", program], check=True)
    columns = [(f"hakmem, {name}", str(flags), "", "") for name, flags in HAK]
    columns += [(name, "malloc", *libraries) for name, *libraries in peers(build)]
    head = [name for name, *_ in columns]
    print(table(["mistake", *head], [[kind, *(verdicts(program, m, lib, kind) for _, m, lib, _ in columns)] for kind in KINDS]))
    print()
    costs = [cost(program, *how) for _, *how in columns]
    print(table(["cost", *head], [["instructions", *(f"{ir:.0f}" for ir, _ in costs)],
                                  ["resident KiB", *(str(kib) for _, kib in costs)]]))


if __name__ == "__main__":
    main()
