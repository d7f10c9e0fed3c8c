#!/usr/bin/env python3
"""Stores a guest as it is after its initialisation: memory and globals of a run become those of a new module.

preinit.py GUEST.wasm OUT.wasm FUNCTION...    calls the functions in this order

For guests with one memory and numeric globals whose tables nobody changes; imports do nothing in the run.
"""

import sys
from pathlib import Path

import wasmtime

IMPORT, MEMORY, GLOBAL, EXPORT, START, DATA_COUNT, CODE, DATA = 2, 5, 6, 7, 8, 12, 10, 11
PAGE = 65536
HOLE = 64  # zeros that are worth a new segment


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def leb(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, n):
        self.at += n
        return self.data[self.at - n : self.at]


def leb(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def signed_leb(value):
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value & 0x7F]))


def sections(data):
    reader = Reader(data)
    reader.take(8)
    while reader.at < len(data):
        kind = reader.byte()
        yield kind, reader.take(reader.leb())


def run(data, functions):
    """Memory and globals after the functions."""
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    module = wasmtime.Module(engine, data)
    linker = wasmtime.Linker(engine)
    for item in module.imports:
        results = len(item.type.results)
        linker.define_func(item.module, item.name, item.type, lambda *_, n=results: 0 if n else None)
    exports = linker.instantiate(store, module).exports(store)
    for name in functions:
        if exports[name](store):
            sys.exit(f"preinit: {name} failed")
    memory = bytes(exports["memory"].read(store, 0, exports["memory"].data_len(store)))
    values = {}
    for name in exports:
        if isinstance(exports[name], wasmtime.Global):
            values[name] = exports[name].value(store)
    return memory, values


def globals_section(content, values_by_index):
    """The same globals; those that were exported begin with what they had."""
    reader = Reader(content)
    count = reader.leb()
    out = bytearray(leb(count))
    for index in range(count):
        kind, mutable, begin = reader.byte(), reader.byte(), reader.at
        if reader.byte() != 0x41 or kind != 0x7F:
            sys.exit("preinit: only globals that are an i32.const")
        while reader.byte() >= 0x80:
            pass
        reader.byte()
        initial = reader.data[begin : reader.at]
        if index in values_by_index:
            initial = b"\x41" + signed_leb(values_by_index[index]) + b"\x0b"
        elif mutable:
            sys.exit("preinit: a mutable global is not exported")
        out += bytes([kind, mutable]) + initial
    return bytes(out)


def data_section(memory):
    segments, at = [], 0
    while at < len(memory):
        if memory[at] == 0:
            at += 1
            continue
        end = memory.find(bytes(HOLE), at)
        end = len(memory) if end < 0 else end
        segments.append((at, memory[at:end]))
        at = end + HOLE
    body = leb(len(segments))
    for at, content in segments:
        body += b"\x00\x41" + signed_leb(at) + b"\x0b" + leb(len(content)) + content
    return len(segments), body


def exported_globals(content):
    """name -> index"""
    reader = Reader(content)
    found = {}
    for _ in range(reader.leb()):
        name, kind = reader.take(reader.leb()).decode(), reader.byte()
        index = reader.leb()
        if kind == 3:
            found[name] = index
    return found


def main():
    guest, out, *functions = sys.argv[1:]
    data = Path(guest).read_bytes()
    memory, values = run(data, functions)
    segments, body = data_section(memory)
    indices = next((exported_globals(c) for k, c in sections(data) if k == EXPORT), {})
    by_index = {indices[name]: value for name, value in values.items()}
    result = bytearray(data[:8])
    for kind, content in sections(data):
        if kind in (START, DATA):
            continue
        if kind == MEMORY:
            content = b"\x01\x00" + leb(len(memory) // PAGE)
        elif kind == GLOBAL:
            content = globals_section(content, by_index)
        elif kind == DATA_COUNT:
            content = leb(segments)
        result += bytes([kind]) + leb(len(content)) + content
    result += bytes([DATA]) + leb(len(body)) + body
    Path(out).write_bytes(result)


if __name__ == "__main__":
    main()
