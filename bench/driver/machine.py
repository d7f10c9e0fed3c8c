"""What the figures were measured on: machine, kernel, compilers, commit."""

import os
import platform
import subprocess

HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


def output(*command, cwd=None):
    """What a command prints, "unknown" where it cannot be had."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip() or "unknown"


def first_line(path, prefix=""):
    """What follows the prefix in the first line that has it, "unknown" where there is none."""
    try:
        with open(path) as f:
            for line in f:
                if line.startswith(prefix):
                    return line[len(prefix) :].strip(" \t:\n")
    except OSError:
        pass
    return "unknown"


def chosen(setting):
    """The word in brackets of a kernel setting such as "always [madvise] never"."""
    return next((w[1:-1] for w in setting.split() if w.startswith("[")), setting)


def brief(pinned_to=None):
    """The part that the tools for runtimes write."""
    return {
        "cpu": first_line("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        **({} if pinned_to is None else {"pinned_to": pinned_to}),
        "kernel": platform.release(),
        "thp": first_line(HUGE_PAGES),
    }


def commit(source):
    """The commit of the tree, marked where files that are measured differ from it."""
    git = ("git", "-C", str(source))
    name = output(*git, "rev-parse", "--short", "HEAD")
    if name == "unknown":
        return name
    # The tools themselves write in docs/.
    differs = [*git, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs"]
    changed = subprocess.run(differs, check=False).returncode
    return f"{name}-dirty" if changed else name


def publishable(commit):
    """Whether somebody else could have measured the same."""
    return commit != "unknown" and not commit.endswith("-dirty")


def describe(source):
    return {
        "cpu": first_line("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "hypervisor": output("systemd-detect-virt", "--vm"),
        "memory_kib": int(first_line("/proc/meminfo", "MemTotal").split()[0]),
        "load_before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "transparent_huge_pages": chosen(first_line(HUGE_PAGES)),
        "compiler": output("cc", "--version").splitlines()[0],
        "libc": " ".join(platform.libc_ver()),
        "commit": commit(source),
    }
