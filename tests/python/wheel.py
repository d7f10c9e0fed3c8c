"""wheel.py INTERPRETER SOURCE ENVIRONMENT [LIBRARY...]: a virtual environment with hakmem, by pip."""

import json
import os
import shutil
import subprocess
import sys

CHECK = "import json, hakmem; print(json.dumps([hakmem.__file__, hakmem.status()['obj']]))"


def skip(message):
    print(message)
    sys.exit(77)


def main():
    interpreter, source, environment, *libraries = sys.argv[1:]
    if interpreter == "-":
        skip(f"CPython {os.path.basename(environment)} is not on this machine")
    made = subprocess.run([interpreter, "-m", "venv", environment], capture_output=True, text=True)
    if made.returncode != 0:
        skip(
            f"{interpreter} makes no virtual environment (Debian package: python3-venv):"
            f" {made.stdout or made.stderr}"
        )
    python = os.path.join(environment, "bin", "python")
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--force-reinstall", "--no-deps", source], env=plain, capture_output=True, text=True
    )
    if done.returncode != 0:
        if "scikit-build-core" in done.stderr and "No matching distribution" in done.stderr:
            skip("pip reaches no package index: no scikit-build-core to build the wheel with")
        sys.exit(done.stdout + done.stderr)
    # Where there are no wheels of them, the tests with libraries are skipped.
    if libraries:
        subprocess.run([*pip, *libraries, "--only-binary", ":all:"], env=plain, capture_output=True)
    done = subprocess.run(
        [python, "-c", CHECK], env=plain, capture_output=True, text=True, check=True, cwd="/"
    )
    file, state = json.loads(done.stdout)
    assert file.startswith(os.path.realpath(environment)) or file.startswith(environment), file
    assert state == "default", state
    look(environment, plain)
    print(file)


def look(environment, plain):
    """The command hakmem of pip: programs, and what reads their reports, where its libraries are on this machine."""
    command = os.path.join(environment, "bin", "hakmem")

    def hakmem(*words):
        done = subprocess.run([command, *words], env=plain, capture_output=True, text=True, cwd=environment)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    hakmem("run", "--all", "--report", "r.json", "-c", "x = [str(n) for n in range(10000)]")
    assert json.loads(hakmem("report", "--json", "r.json"))["schema"] == "hakmem-report/1"
    libraries = subprocess.run(["pkg-config", "--exists", "jansson", "libprotobuf-c", "zlib"], check=False).returncode == 0
    if not libraries or not shutil.which("protoc-c"):
        print("no libraries for the command that reads reports, or no pkg-config")
        return
    assert hakmem("diff", "r.json", "r.json").lstrip(), "a difference"
    assert "resident memory" in hakmem("report", "r.json")
    assert "hakmem_live_bytes" in hakmem("prometheus", "r.json")


if __name__ == "__main__":
    main()
