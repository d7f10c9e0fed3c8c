#!/usr/bin/env python3
"""Links and anchors of Markdown files lead somewhere, and documents that sources name exist."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
GENERATED = {".git", "build", "__pycache__", ".ruff_cache"}
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.M | re.S)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.M)
PLACE = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
NAMED = re.compile(r"(?<![\w./-])docs/[\w./-]+\.(?:md|svg)")


def without_code(text):
    """Blanks what is code, lines kept."""
    for pattern in FENCE, CODE:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def anchors(text):
    """As GitHub makes them: lower case, no punctuation, hyphens for spaces, a number when repeated."""
    known = set(PLACE.findall(text))
    repeated = {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = repeated.get(slug, 0)
        repeated[slug] = count + 1
        known.add(f"{slug}-{count}" if count else slug)
    return known


def files(root, suffixes):
    for path in sorted(root.rglob("*")):
        if (
            path.suffix in suffixes
            and path.is_file()
            and not GENERATED & set(path.relative_to(root).parts[:-1])
        ):
            yield path


def broken(root):
    """One line for each link of a Markdown file below root that leads nowhere."""
    wrong = []
    for page in files(root, {".md"}):
        text = without_code(page.read_text())
        for found in LINK.finditer(text):
            link = found[1] or found[2]
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            where = f"{page.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: {link}"
            if root not in target.parents:
                wrong.append(f"{where}: outside of the tree")
            elif not target.exists():
                wrong.append(f"{where}: no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                wrong.append(f"{where}: no such heading")
    return wrong


def misnamed(root):
    """One line for each docs/... that a file below root names and that is not there."""
    wrong = []
    sources = {".c", ".h", ".cpp", ".py", ".lua", ".cmake", ".txt", ".toml", ".rs", ".sh", ".md", ""}
    for source in files(root, sources):
        if source == Path(__file__).resolve():
            continue
        try:
            text = source.read_text()
        except UnicodeDecodeError:
            continue
        for name in NAMED.findall(text):
            if not (root / name).exists():
                wrong.append(f"{source.relative_to(root)}: {name}")
    return wrong


def unknown_names(root):
    """Names in `code` of the documents that no source has; pages of what was tried keep the old ones."""
    sources = "".join(
        path.read_text(errors="replace")
        for folder in ("core", "bindings", "examples")
        for path in files(root / folder, {".c", ".h", ".lua", ".txt", ".cmake", ".in", ".py"})
    )
    known = set(re.findall(r"\bha?k[a-z]?_\w+", sources))
    wrong = []
    for page in [root / "README.md", *files(root / "docs", {".md"})]:
        if "tried" in page.parts or not page.exists():
            continue
        for code in re.findall(r"`([^`\n]+)`", page.read_text()):
            for name in re.findall(r"\b(ha?k[a-z]?_\w+)\b(?!\*)", code):
                if name not in known and not any(k.startswith(name + "_") for k in known):
                    wrong.append(f"{page.relative_to(root)}: {name}")
    return wrong


def missing_paths(root):
    """Files and folders in `code` of the documents that are not there; NAME and the like stand for any."""
    wrong = []
    path = re.compile(r"`((?:bench|bindings|cmake|core|docs|examples|scripts|tests)/[\w./-]+)`")
    for page in [root / "README.md", *files(root / "docs", {".md"})]:
        if "tried" in page.parts or not page.exists():
            continue
        for name in path.findall(page.read_text()):
            if not re.search(r"[A-Z]{4}", name) and not (root / name).exists():
                wrong.append(f"{page.relative_to(root)}: {name}")
    return wrong


class Documents(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        self.assertEqual(broken(SOURCE), [])

    def test_every_document_that_a_source_names_exists(self):
        self.assertEqual(misnamed(SOURCE), [])

    def test_every_name_of_the_sources_in_a_document_exists(self):
        self.assertEqual(unknown_names(SOURCE), [])

    def test_every_path_in_a_document_exists(self):
        self.assertEqual(missing_paths(SOURCE), [])

    def test_no_document_has_marks_of_a_merge(self):
        marked = [
            str(p) for p in files(SOURCE, {".md"}) if re.search(r"^(<<<<<<<|>>>>>>>) ", p.read_text(), re.M)
        ]
        self.assertEqual(marked, [])

    def test_every_document_is_reached_from_the_first_page(self):
        seen, waiting = set(), [SOURCE / "README.md"]
        while waiting:
            page = waiting.pop()
            if page in seen or page.suffix != ".md" or not page.exists():
                continue
            seen.add(page)
            for found in LINK.finditer(without_code(page.read_text())):
                waiting.append((page.parent / (found[1] or found[2]).partition("#")[0]).resolve())
        self.assertEqual([str(p) for p in files(SOURCE / "docs", {".md"}) if p not in seen], [])


class Checker(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name).resolve()
        (self.root / "docs").mkdir()

    def page(self, name, text):
        (self.root / name).write_text(text)

    def test_a_missing_file_is_found_with_its_line(self):
        self.page("a.md", "# A\n\nsee [b](docs/b.md)\n")
        self.assertEqual(broken(self.root), ["a.md:3: docs/b.md: no such file"])

    def test_a_missing_picture_and_a_missing_reference_are_found(self):
        self.page("a.md", "![p](p.svg)\n\n[r]: gone.md\n")
        self.assertEqual(len(broken(self.root)), 2)

    def test_a_missing_heading_is_found_in_the_same_and_another_file(self):
        self.page("a.md", "# A\n[x](#b) [y](docs/b.md#c) [z](#a) [w](docs/b.md#to-be-or-not-1)\n")
        self.page("docs/b.md", "# To be, or `not`\n\n# To be or not\n")
        self.assertEqual(
            broken(self.root), ["a.md:2: #b: no such heading", "a.md:2: docs/b.md#c: no such heading"]
        )

    def test_a_link_out_of_the_tree_is_found(self):
        self.page("docs/a.md", "[x](../../elsewhere.md)\n")
        self.assertEqual(broken(self.root), ["docs/a.md:1: ../../elsewhere.md: outside of the tree"])

    def test_code_and_addresses_are_no_links(self):
        self.page(
            "a.md",
            "`a[i](b)` [x](https://example.org/y)\n\n```\n[x](gone.md)\n# none\n```\n[y](#none)\n",
        )
        self.assertEqual(broken(self.root), ["a.md:7: #none: no such heading"])

    def test_a_name_that_no_source_has_is_found(self):
        (self.root / "core").mkdir()
        self.page("core/a.h", "int hk_there(void); struct hk_part_of_it;")
        self.page(
            "docs/a.md", "`hk_there(x)`, `hk_part` and `hk_*` are, `hk_gone` is not, hk_prose is no code\n"
        )
        self.assertEqual(unknown_names(self.root), ["docs/a.md: hk_gone"])

    def test_a_path_that_leads_nowhere_is_found(self):
        (self.root / "core").mkdir()
        self.page("core/a.h", "")
        self.page("docs/a.md", "`core/a.h`, `core/test_NAME.cpp`, `core/gone.h`, `core/gone/`\n")
        self.assertEqual(missing_paths(self.root), ["docs/a.md: core/gone.h", "docs/a.md: core/gone/"])

    def test_a_source_that_names_a_missing_document_is_found(self):
        self.page("a.h", "/* see docs/a.md and docs/b.md */\n")
        self.page("docs/a.md", "")
        self.assertEqual(misnamed(self.root), ["a.h: docs/b.md"])


class Pip(unittest.TestCase):
    def test_who_installs_by_pip_does_so_in_a_virtual_environment(self):
        """The Python of a distribution refuses (PEP 668): each paragraph that installs hakmem makes one."""
        found = 0
        for page in ("README.md", "docs/guide/python.md", "docs/guide/building.md", "docs/guide/packages.md"):
            for paragraph in (SOURCE / page).read_text().split("\n\n"):
                for _ in re.finditer(r"pip install (--quiet )?(\.(?=[`\s])|/src/hakmem|\"\$HAKMEM_SOURCE)", paragraph):
                    found += 1
                    self.assertRegex(paragraph, r"-m venv|virtual environment", page)
        self.assertGreaterEqual(found, 4)


if __name__ == "__main__":
    unittest.main()
