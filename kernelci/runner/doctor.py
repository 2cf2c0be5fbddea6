"""What `kernelci doctor --runner` says of a machine that is to take jobs: what it needs, and what contains a job."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from kernelci.check import Check
from kernelci.config import RunnerOptions, load
from kernelci.errors import KernelciError
from kernelci.runner import cgroup, hardware, health, installing, sweep, users
from kernelci.runner.health import Machine, Nvidia, Seen
from kernelci.runner.host import commands_missing
from kernelci.runner.keep import namespaces
from kernelci.runner.unit import CREDENTIALS
from kernelci.runner.workplace import free_bytes

PARAMETERS = Path("/proc/driver/nvidia/params")
TOKENS = Path("/etc/kernelci")
_USERNS: dict[Path, Callable[[str], bool]] = {
    Path("/proc/sys/user/max_user_namespaces"): lambda text: int(text) > 0,
    Path("/proc/sys/kernel/unprivileged_userns_clone"): lambda text: int(text) == 1,
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"): lambda text: int(text) == 0,
}  # each is there on some systems only


def examine(root: Path, machine: Callable[[], Machine] = Nvidia) -> list[Check]:
    """All checks of a host whose configuration is in `root`."""
    try:
        options = load(root).runner
    except KernelciError as error:
        return [Check("configuration", False, error.message, error.hint, essential=True)]
    seen = machine().look(fresh=True)
    return [
        _policy(options), _programs(), _user(options), _python(options), _installation(options), _broker(options),
        *tokens(TOKENS), _disk(options), _group(), _own_files(), bubblewrap(), gpus(options, seen), _persistence(seen),
        counters(_read(PARAMETERS), bool(seen.gpus)), nodes(Path("/dev"), bool(seen.gpus)), _mps(),
    ]  # fmt: skip


def _policy(options: RunnerOptions) -> Check:
    """Whether any job would be admitted."""
    missing = [name for name in ("repository", "workflows") if not getattr(options, name)]
    if options.repositories and "repository" in missing:
        missing.remove("repository")
    if missing:
        step = "[runner] in kernelci.toml of the folder --root; docs/runner.md has an example"
        return Check("policy", False, f"not set: {', '.join(missing)}", step, essential=True)
    admitted = f"{', '.join(options.workflows)} on {', '.join(options.events)}"
    return Check("policy", True, f"admits {admitted[:200]}")


def _programs() -> Check:
    missing = commands_missing()
    step = "apt-get install util-linux coreutils findutils" if missing else ""
    return Check(
        "programs", not missing, f"missing: {', '.join(missing)}" if missing else "all there", step, essential=True
    )


def _user(options: RunnerOptions) -> Check:
    try:
        user = users.find(options.user)
    except KernelciError as error:
        return Check("user of jobs", False, error.message, error.hint, essential=True)
    if not user.apart:
        return Check(
            "user of jobs", False, "that of the loop", "run the loop as root, with a `user` of its own for jobs"
        )
    return Check("user of jobs", True, f"{user.name} ({user.uid})")


def _python(options: RunnerOptions) -> Check:
    """Whether the job's user can run this interpreter, for the known sum."""
    command = [sys.executable, "-P", "-c", "import kernelci.runner.probe"]
    try:
        user = users.find(options.user)
    except KernelciError:
        return Check("interpreter", False, "not tried: no user")
    if user.apart:
        command = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    step = "install kernelci where every user can read it, for example in /opt/kernelci"
    return Check(
        "interpreter",
        done.returncode == 0,
        said[0] if done.returncode else sys.executable,
        step * bool(done.returncode),
    )


def _installation(options: RunnerOptions) -> Check:
    found = installing.installed(Path(options.installation))
    passed = bool(found) and found == options.version
    text = f"version {found} in {options.installation}" if found else f"nothing in {options.installation}"
    return Check("GitHub's runner", passed, text, "" if passed else "kernelci runner setup", essential=True)


def _broker(options: RunnerOptions) -> Check:
    """Whether somebody else listens there."""
    path = Path(options.broker)
    try:
        found = path.stat()
    except OSError as error:
        return Check("broker", False, f"{path}: {error.strerror}", "systemctl start kernelci-broker", essential=True)
    if not stat.S_ISSOCK(found.st_mode):
        return Check("broker", False, f"{path} is no socket", "kernelci runner unit", essential=True)
    near = found.st_uid in (users.number(options.host_user), os.geteuid())
    step = "let the broker have a user of its own: kernelci runner unit" if near else ""
    return Check("broker", not near, f"{path} of user {found.st_uid}", step)


def tokens(folder: Path) -> list[Check]:
    """Whether others than root can read what is secret."""
    found = [folder / name for name in CREDENTIALS if (folder / name).is_file()]
    return [
        Check(
            "secret",
            not path.stat().st_mode & 0o077,
            str(path),
            f"chmod 600 {path}" * bool(path.stat().st_mode & 0o077),
        )
        for path in found
    ]


def _disk(options: RunnerOptions) -> Check:
    free = free_bytes(Path(options.state))
    passed = free >= options.disk_free_bytes
    return Check(
        "disk",
        passed,
        f"{free / 2**30:.1f} GiB free at {options.state}",
        "" if passed else "make room: jobs wait for it",
    )


def _group() -> Check:
    made = cgroup.make("kernelci-doctor")
    if made is not None:
        made.end()
        return Check("control group", True, f"{made.folder}")
    step = "run under the unit (Delegate=yes), on a system with control groups of version 2"
    return Check("control group", False, "none can be made: processes are found by parent and user", step)


def _own_files() -> Check:
    passed = namespaces()
    step = "" if passed else "as root, outside a container: jobs get their own /tmp and /dev/shm then"
    return Check(
        "own /tmp and /dev/shm", passed, "mount and IPC namespaces" if passed else "shared with the host", step
    )


def bubblewrap(place: Callable[[Path], str] = lambda path: _read(path)) -> Check:
    """Whether kernelci inside a job can put kernels into a sandbox without any right."""
    if shutil.which("bwrap") is None:
        return Check("bubblewrap", False, "not installed", "apt-get install bubblewrap")
    closed = [str(path) for path, open_ in _USERNS.items() if (text := place(path).strip()) and not open_(text)]
    step = f"sysctl: {', '.join(closed)} forbids namespaces to users" if closed else ""
    return Check("bubblewrap", not closed, "closed to users" if closed else "open to users", step)


def gpus(options: RunnerOptions, seen: Seen) -> Check:
    """Whether the GPUs are well, and what they are."""
    faults = health.gpu_faults(options, seen, seen)
    if faults:
        return Check("GPUs", False, health.text(faults), "kernelci explain gpu-sick", essential=True)
    return Check("GPUs", True, ", ".join(hardware.labels(seen.hardware)[len(hardware.ALWAYS) :]))


def _persistence(seen: Seen) -> Check:
    off = [state.gpu.name for state in seen.gpus if state.persistent is False]
    told = any(state.persistent for state in seen.gpus)
    text = f"off: {', '.join(off)}" if off else "on" if told else "not told"
    return Check(
        "persistence mode",
        told and not off,
        text,
        "" if told and not off else "systemctl enable --now nvidia-persistenced",
    )


def counters(parameters: str, has_gpu: bool) -> Check:
    """Whether Nsight Compute may read hardware counters as an ordinary user; `parameters`: the driver's."""
    told = next(
        (line.split(":")[1].strip() for line in parameters.splitlines() if line.startswith("RmProfilingAdminOnly")), ""
    )
    if told == "0":
        return Check("hardware counters", True, "open to users")
    step = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot; profile needs it"
    return Check("hardware counters", False, "for root only" if told else "not told" if has_gpu else "no driver", step)


def nodes(folder: Path, has_gpu: bool) -> Check:
    """Whether the device nodes are there before a job: it can't have them made, since it gains no rights."""
    wanted = [folder / "nvidiactl", folder / "nvidia-uvm", *folder.glob("nvidia[0-9]*")]
    closed = [str(path) for path in wanted if not (path.exists() and path.stat().st_mode & 0o006 == 0o006)]
    step = "nvidia-modprobe -u -c 0 at boot (nvidia-persistenced does it), for a job can't" if closed else ""
    return Check(
        "device nodes",
        not closed,
        f"missing or closed: {', '.join(closed)}" if closed else "open to users",
        step * has_gpu,
    )


def _mps() -> Check:
    found = sorted({process.name for process in sweep.table().values() if process.name.startswith("nvidia-cuda-mp")})
    step = "echo quit | nvidia-cuda-mps-control: it shares a GPU between processes" if found else ""
    return Check("MPS", not found, f"runs: {', '.join(found)}" if found else "off", step)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def conclusion(checks: list[Check]) -> str:
    """What all of it means, in one sentence."""
    if any(check.essential and not check.passed for check in checks):
        return "This machine can't take jobs yet: see the lines that say NO."
    weak = [check.name for check in checks if not check.passed]
    return (
        f"This machine can take jobs; weaker than it could be: {', '.join(weak)}."
        if weak
        else "This machine can take jobs."
    )
