"""Options of the programs and of the build: each is in the table of its page and in what the program itself prints, and no
table has another one. So are the functions of the modules and of the shim: test_options.py SOURCE"""

import json
import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])


def text(path):
    return (SOURCE / path).read_text()


def table(path, option):
    """What stands in the first cells of a page's rows, in the order of the page."""
    return [name for line in text(path).splitlines() if line.startswith("| `") for name in re.findall(option, line.split(" |")[0])]


class Options(unittest.TestCase):
    def same(self, found, known):
        self.assertGreater(len(set(known)), 4)
        self.assertEqual(sorted(found), sorted(set(known)))

    def test_of_the_shim(self):
        source = text("bindings/preload/src/settings.c")
        known = re.findall(r'strcmp\(key, "(\w+)"\) == 0', source)
        self.same(table("docs/guide/preload.md", r"^\| `(\w+)=`"), known)
        told = "".join(re.findall(r'"(.*?)"', re.search(r'return "no such key; there are (.*?);', source, re.S)[0]))
        self.same(re.findall(r"(?:are|,) (\w+)=", told), known)

    def test_of_the_launchers(self):
        source = text("bindings/lua/launcher/options.c")
        known = re.findall(r'(?:value_of\(arg|strcmp\(arg), "--hak-([a-z-]+)"\)', source)
        self.same(table("docs/guide/lua.md", r"`--hak-([a-z-]+)"), known)
        self.same(re.findall(r'^ +"  --hak-([a-z-]+)', source, re.M), known)
        macro = re.search(r"#define HAK_OPTIONS(.*?)\n\n", source, re.S)[1]
        self.same(re.findall(r"--hak-([a-z-]+)", macro), known)

    def test_of_python(self):
        source = text("bindings/python/hakmem/_cli.py")
        hook = re.search(r"def option_of_labels.*?def parser\(", source, re.S)[0]
        known = re.findall(r'"--([a-z-]+)"', hook)
        self.same(set(table("docs/guide/python.md", r"^\| `--([a-z-]+)")) - {"hakmem", "hakmem-top"}, known)

    def test_variables_of_python(self):
        launch = text("bindings/python/hakmem/_launch.py")
        names = re.search(r"for name in \((.*?)\)", launch, re.S)[1]
        known = ["HAKMEM_DOMAINS", *(f"HAKMEM_{name.upper()}" for name in re.findall(r'"(\w+)"', names))]
        listed = re.search(r"The variables are (.*?)\. In\s+programs", text("docs/guide/python.md"), re.S)[1]
        self.same(re.findall(r"`(HAKMEM_\w+)`", listed), known)

    def test_of_the_command_hakmem(self):
        source = text("bindings/report/src/main.c")
        usage = "".join(re.findall(r'^ +"(.*?)\\n"', re.search(r"usage\[\] =(.*?);\n", source, re.S)[1], re.M))
        self.assertIn("usage: hakmem", usage)
        options = [name for name in re.findall(r'\{"([a-z-]+)", (?:required|no)_argument', source) if name not in ("help", "version", "otlp")]
        self.same(table("docs/guide/report.md", r"`--([a-z-]+)"), options)
        for name in options:
            self.assertIn(f"--{name} ", usage)
        commands = set(re.findall(r'^    \{"(\w+)", (?:write|hkr_write)_', source, re.M)) | {"attach", "top", "policy", "serve", "push"}
        self.same(set(re.findall(r"^hakmem (\w+) ", text("docs/guide/report.md"), re.M)), commands)

    def test_functions_of_the_lua_module(self):
        source = text("bindings/lua/src/module.c")
        known = re.findall(r'\{"(\w+)", module_\w+\}', source)
        self.same(set(table("docs/guide/lua.md", r"`(\w+)\(")) & set(known), known)
        fields = re.findall(r'\{"(\w+)", s\.\w+\}', source)
        row = re.search(r"^\| `stats\(\)` \|.*$", text("docs/guide/lua.md"), re.M)[0]
        self.same(re.findall(r"`([a-z_]+)`", row.split("hakmem.h):")[1]), fields)
        profile = re.findall(r'\{"(\w+)", profile_\w+\}', text("bindings/lua/src/profile/module.c"))
        self.same(set(table("docs/guide/lua-profile.md", r"`profile\.(\w+)[({]")), profile)

    def test_functions_of_the_python_module(self):
        public = re.search(r"__all__ = \[(.*?)\]", text("bindings/python/hakmem/_public.py"), re.S)[1]
        pages = text("docs/guide/python.md") + text("docs/guide/python-labels.md")
        for name in re.findall(r'"([a-z]\w+)"', public):
            self.assertRegex(pages, rf"\b{name}\b", name)
        profile = re.search(r"__all__ = \[(.*?)\]", text("bindings/python/hakmem/profile.py"), re.S)[1]
        self.same(table("docs/guide/python-profile.md", r"`(\w+)\("), re.findall(r'"([a-z]\w+)"', profile))

    def test_functions_of_the_shim(self):
        exported = re.sub(r"/\*.*?\*/", "", text("bindings/preload/module.map"), flags=re.S)
        known = re.findall(r"(\w+);", exported.split("local:")[0])
        told = text("docs/guide/preload.md").split("## What is replaced")[1].split("\n- ")[0]
        for name in known:
            if name != "mmap64":
                self.assertRegex(told, rf"\b{name}\b", name)
        for name in re.findall(r"\b[a-z]+(?:_[a-z]+)*(?=[,.;`])", told):
            if re.search("alloc|free|mall|mmap|mremap", name) and name != "jemalloc":
                self.assertIn(name, known)

    def test_of_the_build(self):
        known = re.findall(r"^(?:option|set)\((HAKMEM_[A-Z_]+) \"", text("CMakeLists.txt"), re.M) + ["HAKMEM_PACKAGES"]
        self.same(table("docs/guide/building.md", r"`(HAKMEM_\w+)`"), known)

    def test_presets(self):
        presets = json.loads(text("CMakePresets.json"))["configurePresets"]
        names = [preset["name"] for preset in presets if not preset.get("hidden")]
        section = text("docs/guide/building.md").split("## Presets")[1].split("\n## ")[0]
        self.same(re.findall(r"^\| `(\w+)`", section, re.M), names)

    def test_purposes_of_setup(self):
        known = re.search(r"usage: scripts/setup \[--list\] \[(.*?)\]", text("scripts/setup"))[1].split(" | ")
        told = re.search(r"what one purpose needs: (.*?)\. The", text("docs/guide/building.md"), re.S)[1]
        self.same(re.findall(r"`(\w+)`", told), known)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
