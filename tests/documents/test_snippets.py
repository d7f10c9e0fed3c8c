#!/usr/bin/env python3
"""test_snippets.py PAGE SOURCE CC [LIBRARY... | --prefix PREFIX]: the C of a page compiles, runs and prints what the page says.

```c NAME top     goes to the top of the program NAME
```c NAME         goes into its main, in the order of the page
```output NAME    what the program prints, all such blocks together
```c from=FILE    is found in that file as it is
```sh NAME        with PREFIX alone: commands, with hakmem in PREFIX, which the page has in /opt/hakmem. If there is a program
                  NAME, it is vm.c, and the commands compile and run it
```text NAME      what such commands print on both streams: any number stands for any other, blanks and bars for any, and a line
                  ... for any lines before the next one
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PAGE, SOURCE, CC, LIBRARIES = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
PREFIX = LIBRARIES[1] if LIBRARIES[0] == "--prefix" else None
SHELL = re.compile(r"^```sh[ \t]+(\w+)\n(.*?)^```[ \t]*$", re.M | re.S)
TEXT = re.compile(r"^```text[ \t]+(\w+)\n(.*?)^```[ \t]*$", re.M | re.S)
BLOCK = re.compile(r"^```(c|output)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)


class Program:
    def __init__(self):
        self.top = self.body = self.output = ""

    def source(self):
        return f"{self.top}\nint main(void)\n{{\n{self.body}\nreturn 0;\n}}\n"


def read(text):
    """The programs of a page by name, and its excerpts as pairs of file and text."""
    programs, excerpts = {}, []
    for kind, words, code in BLOCK.findall(text):
        words = words.split()
        if not words:
            raise ValueError(f"no name: {code}")
        if words[0].startswith("from="):
            excerpts.append((words[0][5:], code))
            continue
        program = programs.setdefault(words[0], Program())
        if kind == "output":
            program.output += code
        elif words[1:] == ["top"]:
            program.top += code
        else:
            program.body += code
    return programs, excerpts


def pattern(text):
    """What the lines of a block `text` stand for."""
    lines = []
    for line in text.splitlines():
        words = [re.escape(re.sub(r"\d+", "0", word)) for word in line.split() if set(word) != {"#"}]
        lines.append("(?:.*\n)*?" if line.strip() == "..." else r"\s*" + r"\s+".join(words) + r"[ #]*\n")
    return re.compile("(?:.*\n)*?" + "".join(lines) + "(?:.*\n)*")


@unittest.skipUnless(PREFIX, "with a prefix")
class Installed(unittest.TestCase):
    def test_the_commands_of_the_page(self):
        programs, _ = read(PAGE.read_text())
        texts = dict(TEXT.findall(PAGE.read_text()))
        commands = SHELL.findall(PAGE.read_text())
        self.assertGreater(len(commands), 0)
        known = {name: value for name, value in os.environ.items() if name not in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH")}
        for name, text in commands:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.assertIn("/opt/hakmem", text)
                self.assertTrue(name in programs or name in texts)
                missing = [path for path in re.findall(r"/opt/hakmem(/\S+)", text) if not Path(PREFIX + path).exists()]
                if missing:
                    self.skipTest(f"{missing[0]} was not installed")
                if name in programs:
                    (Path(folder) / "vm.c").write_text(programs[name].source())
                script = "set -euo pipefail\n" + text.replace("/opt/hakmem", PREFIX)
                done = subprocess.run(["bash", "-c", script], cwd=folder, env=known, capture_output=True, text=True, check=False)
                if name in programs:
                    self.assertEqual((done.returncode, done.stdout), (0, programs[name].output), done.stderr)
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    printed = re.sub(r"\d+", "0", done.stdout + done.stderr)
                    self.assertRegex(printed, pattern(texts[name]))


@unittest.skipIf(PREFIX, "without a prefix")
class Snippets(unittest.TestCase):
    def test_programs(self):
        programs, _ = read(PAGE.read_text())
        self.assertGreater(len(programs), 0)
        for name, program in programs.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / f"{name}.c"
                source.write_text(program.source())
                command = [CC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", source]
                command += [f"-I{SOURCE}/core/include", f"-I{SOURCE}/bindings/host/include", *LIBRARIES, "-pthread"]
                command += ["-o", f"{folder}/program"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = subprocess.run([f"{folder}/program"], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, program.output), done.stderr)

    def test_excerpts(self):
        for name, code in read(PAGE.read_text())[1]:
            with self.subTest(name):
                self.assertIn(code, (SOURCE / name).read_text())

    def test_what_a_block_of_text_stands_for(self):
        shown = pattern("  label   bytes\n  table  12  4.5 %  ##\n  ...\n  live  9\n")
        self.assertRegex("x\n label bytes\n  table 0 0.0 % ####\n  other\n live   0\nand more\n", shown)
        self.assertNotRegex(" label bytes\n  hash 0 0.0 % ####\n live   0\n", shown)

    def test_every_block_of_c_is_seen(self):
        self.assertEqual(PAGE.read_text().count("```c"), len(re.findall(r"^```c [^\n]+$", PAGE.read_text(), re.M)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
