"""What the figures were measured on: machine, kernel, compilers, commit."""

import os
import platform
import subprocess
from pathlib import Path


def _output(*command, cwd=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _field(path, key):
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return ""


def _chosen(path):
    """The word in brackets of a kernel setting such as "always [madvise] never"."""
    try:
        words = Path(path).read_text().split()
    except OSError:
        return "unknown"
    return next((w[1:-1] for w in words if w.startswith("[")), " ".join(words))


def describe(source):
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "hypervisor": _output("systemd-detect-virt", "--vm") or "unknown",
        "memory_kib": int(_field("/proc/meminfo", "MemTotal").split()[0]),
        "load_before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "transparent_huge_pages": _chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "compiler": _output("cc", "--version").splitlines()[0] if _output("cc", "--version") else "unknown",
        "libc": " ".join(platform.libc_ver()),
        "commit": _output("git", "describe", "--always", "--dirty", cwd=source) or "unknown",
    }
