"""What a result must say of where it was measured. Names no host and no path."""
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess


def _read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _cpu_field(cpuinfo, field):
    found = re.search(rf"^{field}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else ""


def caches(folder="/sys/devices/system/cpu/cpu0/cache"):
    """KiB of the caches of the first core; None where the kernel tells none."""
    sizes = {"l2_kib": None, "l3_kib": None}
    for index in pathlib.Path(folder).glob("index*"):
        level = f"l{_read(index / 'level')}_kib"
        size = re.fullmatch(r"(\d+)K", _read(index / "size") or "")
        if level in sizes and size:
            sizes[level] = int(size.group(1))
    return sizes


def machine():
    """CPU, cores, caches, memory, kernel, and how busy it is now."""
    cpuinfo = _read("/proc/cpuinfo") or ""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_field(cpuinfo, "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        **caches(),
        "memory_gib": round(pages * size / 2**30, 1),
        "virtual": "hypervisor" in _cpu_field(cpuinfo, "flags").split(),
        "kernel": platform.release(),
        "governor": _read(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def slug(facts):
    """A kind of machine for a file's name: `intel-xeon-2-cores`."""
    name = re.sub(r"\([^)]*\)|@.*|\b(CPU|Processor)\b", " ", facts["cpu"])
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words + [str(facts["cores"]), "cores"])


def _output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def source(root):
    """The commit, and whether tracked files differ from it."""
    changed = _output("git", "-C", root, "status", "--porcelain",
                      "--untracked-files=no")
    return {"commit": _output("git", "-C", root, "rev-parse", "--short", "HEAD"),
            "dirty": bool(changed)}


def code_flags(command):
    """The flags of a compiler's command line that make other code; no path."""
    return " ".join(word for word in shlex.split(command)
                    if re.fullmatch(r"-(O|f|m|g|std=|D)[^/]*", word))


def _kernel_command(folder, source_folder):
    """The command that compiles one of the CPU's kernels."""
    try:
        commands = json.loads(_read(folder / "compile_commands.json") or "[]")
    except ValueError:
        return ""
    return next((entry["command"] for entry in commands
                 if entry["file"].startswith(f"{source_folder}/kernels/cpu/")),
                "")


def build(folder):
    """Compiler and flags of a build folder, as CMake wrote them there."""
    folder = pathlib.Path(folder)
    cache = _read(folder / "CMakeCache.txt") or ""

    def value(name):
        found = re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
        return found.group(1) if found else ""

    version = _output(value("CMAKE_CXX_COMPILER") or "c++", "--version")
    command = _kernel_command(folder, value("CMAKE_HOME_DIRECTORY"))
    return {"compiler": version.splitlines()[0] if version else "",
            "build_type": value("CMAKE_BUILD_TYPE"),
            "flags": code_flags(command)}
