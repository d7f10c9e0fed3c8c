#!/usr/bin/env python3
"""spec.py SUITE OUT WAST2JSON [WASM2C]: the specification's tests, for the drivers of the runtimes.

For all scripts of the suite it writes OUT/modules.txt, one line a command:
    module FILE.wasm                         the commands that follow are for a new instance of it
    return FUNCTION ARGUMENT... -> RESULT... and
    trap FUNCTION ARGUMENT...                arguments and results as TYPE:BITS; nan = any NaN, null = a null
                                             reference
With WASM2C also OUT/c/: each module as C, and spec_modules.c, a table of all of them with their commands.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Functions of other modules that the drivers define; what else is imported cannot be had for every runtime.
FUNCTIONS = {("a", f"ef{i}") for i in range(5)} | {("spectest", "print"), ("spectest", "print_i32")}

# Scripts that wast2json of wabt 1.0.32 does not read.
NEWER = ("comments", "if")

# Scripts of 398 small modules, six of which have a memory. To compile them as C takes some 40 s of a processor.
MANY = ("const", "float_exprs")


def leb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def imports(binary):
    """(module, name) of the functions that a module imports; None when it imports anything else."""
    at = 8
    while at < len(binary):
        section = binary[at]
        size, at = leb(binary, at + 1)
        if section == 2:
            break
        at += size
    else:
        return []
    count, at = leb(binary, at)
    found = []
    for _ in range(count):
        names = []
        for _ in range(2):
            n, at = leb(binary, at)
            names.append(binary[at : at + n].decode())
            at += n
        if binary[at] != 0:
            return None
        _, at = leb(binary, at + 1)
        found.append(tuple(names))
    return found


def value(v):
    if v["type"] == "v128":
        raise KeyError
    bits = v.get("value", "any")
    return v["type"] + ":" + ("nan" if bits.startswith("nan") else bits)


def command(c):
    """A line, or None for what is no call of the newest module."""
    action = c.get("action")
    if c["type"] not in ("assert_return", "assert_trap", "action") or action["type"] != "invoke" or "module" in action:
        return None
    field = action["field"]
    try:
        words = [field] + [value(v) for v in action["args"]]
        if c["type"] == "assert_trap":
            return "trap " + " ".join(words)
        results = [value(v) for v in c.get("expected", [])]
    except KeyError:
        return None
    if re.search(r"\s", field) or not field:
        return None
    return "return " + " ".join(words + ["->"] + results)


def convert(script, out, wast2json):
    # wast2json of wabt 1.0.32 wants the index of the table, which is 0 when it is left out.
    text = re.sub(r"\b(table\.(?:get|set|grow|fill|size))(?=\s*[()])", r"\1 0", script.read_text())
    (out / script.name).write_text(text)
    log = out / f"{script.stem}.json"
    subprocess.run([wast2json, script.name, "-o", log.name], cwd=out, check=True, stderr=subprocess.DEVNULL)
    groups = []
    for c in json.loads(log.read_text())["commands"]:
        if c["type"] == "module":
            groups.append((c["filename"], []))
        elif groups and (line := command(c)):
            groups[-1][1].append(line)
    kept = []
    for name, lines in groups:
        needs = imports((out / name).read_bytes())
        if lines and needs is not None and FUNCTIONS.issuperset(needs):
            kept.append((name, lines))
    return kept


def c_value(text, c_type):
    if c_type == "wasm_rt_externref_t":
        bits = text.split(":")[1]
        return "NULL" if bits == "null" else f"(void *)(uintptr_t)({bits} + 1)"
    if c_type == "wasm_rt_funcref_t":
        return "wasm_rt_funcref_null_value"
    bits = text.split(":")[1] + "u"
    return {"f32": f"float_of({bits})", "f64": f"double_of({bits}ll)", "u64": bits + "ll"}.get(c_type, bits)


def c_command(line, instance, functions):
    kind, field, *rest = line.split()
    result, symbol, parameters = functions[field]
    results = []
    if "->" in rest:
        results = rest[rest.index("->") + 1 :]
        rest = rest[: rest.index("->")]
    call = f"{symbol}({', '.join([instance] + [c_value(a, t) for a, t in zip(rest, parameters)])})"
    if kind == "trap":
        return f"    TRAPS({call});"
    # Several results come as a struct, of which only the return is checked; a reference to a function has no known value.
    if len(results) != 1 or results[0].startswith("funcref"):
        return f"    RUNS({call});"
    if results[0].endswith(":nan"):
        return f"    IS_NAN({call});"
    return f"    GIVES({result}, {call}, {c_value(results[0], result)});"


def compile_to_c(out, modules, wasm2c):
    """Each module as C, and a table of them with their commands."""
    driver = ['#include "spec_wasm2c.h"', ""]
    table = []
    for file, lines in modules:
        name = "spec_" + re.sub(r"\W", "_", file[: -len(".wasm")])
        subprocess.run([wasm2c, "-n", name, out / file, "-o", out / "c" / f"{name}.c"], check=True)
        header = (out / "c" / f"{name}.h").read_text()
        functions = {}
        for field, result, symbol, parameters in re.findall(r"/\* export: '(.*)' \*/\n(.+) (\w+)\((.*)\);", header):
            functions[field] = result, symbol, parameters.split(", ")[1:]
        arguments = re.search(rf"void Z_{name}_instantiate\((.*)\);", header)[1].count(",")
        driver += [f'#include "{name}.h"', f"static Z_{name}_instance_t {name};"]
        driver += [f"static void {name}_begin(void)", "{", f"    Z_{name}_init_module();"]
        driver += [f"    Z_{name}_instantiate(&{name}{', NULL' * arguments});", "}"]
        driver += [f"static void {name}_end(void)", "{", f"    Z_{name}_free(&{name});", "}"]
        driver += [f"static void {name}_run(void)", "{"]
        driver += [c_command(line, f"&{name}", functions) for line in lines] + ["}", ""]
        table.append(f'    {{"{file}", &{name}, sizeof {name}, {name}_begin, {name}_run, {name}_end}},')
    driver += ["const struct spec_module spec_modules[] = {"] + table + ["    {NULL, NULL, 0, NULL, NULL, NULL},", "};"]
    (out / "c" / "spec_modules.c").write_text("\n".join(driver) + "\n")


def main():
    suite, out, wast2json, wasm2c = (sys.argv[1:] + [None])[:4]
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)
    (out / "c").mkdir(parents=True)
    modules = []
    for script in sorted(Path(suite).glob("*.wast")):
        if script.stem not in NEWER:
            modules += convert(script, out, wast2json)
    (out / "modules.txt").write_text("".join(f"module {n}\n" + "\n".join(l) + "\n" for n, l in modules))
    if wasm2c:
        compile_to_c(out, [m for m in modules if m[0].split(".")[0] not in MANY], wasm2c)
    print(f"{len(modules)} modules, {sum(len(lines) for _, lines in modules)} commands")


main()
