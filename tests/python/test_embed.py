"""Programs that embed Python, and have it begin more than once."""

import os
import shutil
import subprocess
import sys
import sysconfig
import unittest
from pathlib import Path

import hakmem
from hakmem import _launch
from support import OBJ, ProgramCase, as_this_python, needs_objects, preloaded


class Embedding(ProgramCase):
    def build(self, source, *more):
        """A program that embeds this Python."""
        library = sysconfig.get_config_var("LDLIBRARY") or ""
        folder = sysconfig.get_config_var("LIBDIR")
        if ".so" not in library or not (Path(folder) / library).exists():
            self.skipTest("this Python has no shared library to embed")
        if not shutil.which("cc"):
            self.skipTest("no C compiler (Debian package: build-essential)")
        header = sysconfig.get_path("include")
        if not (Path(header) / "Python.h").exists():
            self.skipTest(f"no headers of this Python in {header}")
        program = self.folder / "embed"
        linking = [
            f"-L{folder}",
            f"-Wl,-rpath,{folder}",
            f"-lpython{sysconfig.get_config_var('LDVERSION')}",
            "-ldl",
            *as_this_python(),
        ]
        support = Path(__file__).parents[1] / "support"
        subprocess.run(
            ["cc", "-o", program, source, f"-I{support}", f"-I{header}", *linking, *more], check=True
        )
        return program

    def embed(self, *arguments, env=None):
        program = self.build(Path(__file__).parent / "embed.c")
        package = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": str(Path(hakmem.__file__).parents[1])}
        done = subprocess.run(
            [program, _launch.HOOK, *arguments],
            env=(env or preloaded(all_domains=True)) | package,
            capture_output=True,
            text=True,
            timeout=100,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_three_cycles_of_initialize_and_finalize(self):
        self.assertEqual(self.embed("cycles"), "cycle 1: ours\ncycle 2: ours\ncycle 3: ours\n")

    @unittest.skipIf(os.geteuid() != 0, "only root can make such a program of another user")
    def test_a_program_with_more_rights_than_its_user_has_no_settings(self):
        """It has the hook by its linker: the loader itself forgets LD_PRELOAD there."""
        hook, report = Path(_launch.HOOK), self.folder / "r.json"
        (self.folder / "plain.c").write_text(
            "#include <Python.h>\nint main(void) { Py_Initialize(); return Py_FinalizeEx() < 0; }\n"
        )
        program = self.build(self.folder / "plain.c", "-Wl,--no-as-needed", str(hook), f"-Wl,-rpath,{hook.parent}")
        self.folder.chmod(0o755)
        environment = {"PYTHONHOME": sys.base_prefix, "HAKMEM_REPORT": str(report)}
        for mode, user in (0o755, None), (0o4755, 65534):
            program.chmod(mode)
            done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=100, user=user)
            self.assertEqual((done.returncode, done.stderr, report.exists()), (0, "", user is None))
            report.unlink(missing_ok=True)

    def test_a_soft_limit_that_is_crossed_when_python_is_gone(self):
        text = "import hakmem; hakmem.limit(1 << 30, soft=100 << 20, soft_callback=lambda: print('late'))"
        self.assertEqual(self.embed("lives", text, env=preloaded(malloc=True)), "over\n")

    @needs_objects
    def test_a_limit_ends_with_the_python_that_set_it(self):
        first = "import hakmem; hakmem.limit(1 << 30, soft=100 << 20, soft_callback=lambda: print('late'))"
        second = """if True:
            import hakmem
            print([hakmem.stats()[name] for name in ("soft_limit", "hard_limit")])
            b = [bytearray(8 << 20) for _ in range(30)]
            del b
            hakmem.limit(2 << 30, soft=100 << 20, soft_callback=lambda: print("mine"))
            b = [bytearray(8 << 20) for _ in range(30)]
        """
        found = self.embed("lives", first, second, second, env=preloaded(limit=3 << 30))
        start = f"[0, {3 << 30}]\n"
        self.assertEqual(found, start + "mine\n" + start + "mine\nover\n")

    @needs_objects
    def test_each_python_has_a_report(self):
        """The last one stays."""
        text = "import sys, os; sys.kept = [bytes(1000) for _ in range(SIZE)]; print(os.path.exists(REPORT))"
        listens = "; print('hakmem-requests' in open('/proc/self/maps').read())"
        path = str(self.folder / "r.json")
        lives = [(text + listens).replace("SIZE", n).replace("REPORT", repr(path)) for n in ("9", "50_000", "30_000")]
        found = self.embed("lives", *lives, env=preloaded(all_domains=True, report=path))
        self.assertEqual(found, "False\nTrue\n" + "True\nTrue\n" * 2 + "over\n")
        (report,) = self.reports()
        self.assertEqual((report["status"]["obj"], report["status"]["early"]), ("replaced", True))
        self.assertGreater(report["stats"]["live_bytes"], 30_000_000)
        self.assertLess(report["stats"]["live_bytes"], 50_000_000)

    def test_forks_that_find_locks_taken(self):
        # A hang ends by the time limit of embed().
        for which in ("fork-beside-flush", "fork-in-handler"):
            with self.subTest(which):
                self.assertEqual(self.embed(which), "0 bad\n")

    def loading(self, flags):
        """What a program says that opens the library of this Python itself, as frozen programs do."""
        library = Path(sysconfig.get_config_var("LIBDIR")) / (
            sysconfig.get_config_var("INSTSONAME") or "none"
        )
        if ".so" not in library.name or not library.exists() or not shutil.which("cc"):
            self.skipTest("no shared library of this Python, or no C compiler")
        (self.folder / "loads.c").write_text(
            """
            #include <dlfcn.h>
            #include <stdio.h>
            #include <string.h>
            #include <time.h>
            int main(int count, char **arguments)
            {
                for (clock_t begun = clock(); clock() - begun < CLOCKS_PER_SEC / 4;) continue;
                void *python = dlopen(arguments[1], FLAGS), *fn = python ? dlsym(python, "Py_BytesMain") : NULL;
                int (*run)(int, char **);
                if (!fn) return fprintf(stderr, "%s\\n", dlerror()), 99;
                memcpy(&run, &fn, sizeof run);
                return run(count - 1, arguments + 1);
            }
            """.replace("FLAGS", flags)
        )
        command = ["cc", "-o", "loads", "loads.c", "-ldl", *as_this_python()]
        subprocess.run(command, cwd=self.folder, check=True)
        environment = preloaded(all_domains=True, report=str(self.folder / "r.json"))
        return subprocess.run(
            [self.folder / "loads", library, "-c", "import sys; print(sys.version_info[1]); sys.exit(7)"],
            env=environment | {"PYTHONHOME": sys.base_prefix},
            capture_output=True,
            text=True,
            timeout=100,
        )

    def test_a_program_that_loads_python_itself(self):
        done = self.loading("RTLD_NOW | RTLD_GLOBAL")
        self.assertEqual((done.returncode, done.stdout), (7, f"{sys.version_info[1]}\n"), done.stderr)
        (report,) = self.reports()
        self.assertEqual((report["status"]["obj"], report["status"]["early"]), (OBJ, True))
        self.assertGreater(report["stats"]["live_blocks"], 5_000 if OBJ == "replaced" else 500)
        self.assertGreater(report["cpu_seconds"], 0.24, "what it took before it loaded Python is its own")

    def test_one_where_it_is_not_to_be_seen(self):
        """Its extension modules, which are not linked to the library, do not load there either."""
        done = self.loading("RTLD_NOW | RTLD_LOCAL")
        self.assertRegex(done.stderr, r"hakmem: this program loads Python for itself alone \(RTLD_LOCAL\)")
        self.assertEqual(self.reports(), [])

    def test_debug_hooks_on_top(self):
        self.assertEqual(self.embed("debug"), "debug hooks on top: ours\n")


if __name__ == "__main__":
    unittest.main()
