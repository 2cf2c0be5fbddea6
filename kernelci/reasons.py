"""Every reason an outcome can have, and every error of the tool: one entry each, read by `kernelci explain`.

To add one, add an entry here; the documentation page and the tests walk the table.
"""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """How a rung ended for a kernel."""

    PASSED = "PASSED"
    FAILED = "FAILED"  # the kernel's fault
    SKIPPED = "SKIPPED"  # not run, with a reason
    BROKEN = "BROKEN"  # the runner's or the reference's fault
    INVALID = "INVALID"  # the measurement can't be trusted


class Reason(NamedTuple):
    """What a code means and what to do next. `outcome` is None for an error of the tool itself."""

    outcome: Outcome | None
    title: str
    meaning: str
    next_step: str


_F, _S, _B, _I = Outcome.FAILED, Outcome.SKIPPED, Outcome.BROKEN, Outcome.INVALID

REASONS: dict[str, Reason] = {
    # precheck
    "card": Reason(
        _F,
        "card can't be read",
        "The kernel file needs exactly one `# /// script` block with a [tool.kernelci] table that names reference, "
        "backend and entry. Unknown keys are refused, since a misspelt one would be ignored in silence.",
        "Compare the block with a kernel made by `kernelci new REFERENCE/NAME --backend …`.",
    ),
    "syntax": Reason(
        _F,
        "file does not parse",
        "Python can't parse the kernel file.",
        "Open the file at the line shown; `kernelci watch KERNEL` answers on every save.",
    ),
    "unknown-reference": Reason(
        _F,
        "unknown reference",
        "The card names a reference that has no file in the references folder.",
        "Correct the name, or add references/NAME.py (CONTRIBUTING.md shows how).",
    ),
    "unknown-backend": Reason(
        _F,
        "unknown backend",
        "The card names a backend that kernelci does not have.",
        "Use one of the names that `kernelci doctor` lists.",
    ),
    "entry-missing": Reason(
        _F,
        "entry not found",
        "The file defines no function of the name that the card gives as entry.",
        "Define it at module level, or correct `entry` in the card.",
    ),
    "entry-signature": Reason(
        _F,
        "entry has other parameters",
        "The entry must take the reference's inputs by name, and either all outputs by name (written in place) or none "
        "of them (returned).",
        "Rename the parameters as the message shows.",
    ),
    "missing-dependency": Reason(
        _S,
        "dependency not installed",
        "The card asks for a distribution, or a version of one, that is not installed here.",
        "Install it (the message names it), for example with `pip install 'kernelci[all]'`.",
    ),
    # compile
    "compile-error": Reason(
        _F,
        "does not compile",
        "The DSL's compiler refused the kernel; its own message is shown with the source line.",
        "Correct the line; `kernelci compile KERNEL` repeats just this rung, and needs no GPU.",
    ),
    "compiler-abort": Reason(
        _F,
        "compiler aborted",
        "The compiler process died on this kernel (a signal, not an error message). Compilers abort on inputs that "
        "they should refuse.",
        "Simplify the kernel until it compiles; the log holds the compiler's last words.",
    ),
    "compile-timeout": Reason(
        _F,
        "compilation took too long",
        "The compiler was still working at the deadline and was killed.",
        "Unroll less, use smaller tiles, or raise compile_timeout_s in the configuration.",
    ),
    "shared-memory": Reason(
        _F,
        "needs more shared memory than the target has",
        "No configuration of the kernel fits the target's shared memory per block.",
        "Use smaller tiles or fewer stages, or take the target out of the card's list.",
    ),
    "nothing-compiled": Reason(
        _F,
        "nothing was compiled",
        "The entry ran with stand-in tensors and launched no kernel of this backend.",
        "Launch the kernel from the entry, or give the file a compile(case, target) function that yields it.",
    ),
    "needs-data": Reason(
        _S,
        "host code needs data",
        "The entry reads values of a tensor on the host before it launches; without a GPU there are none.",
        "Give the file a compile(case, target) function, or run this rung on a GPU host.",
    ),
    "target": Reason(
        _S,
        "target not in the card's list",
        "The card lists the targets that this kernel supports; this is not one of them.",
        "Nothing to do, or add the target to the card.",
    ),
    # run
    "shape": Reason(
        _F,
        "wrong shape",
        "An output that the entry returned has another shape than the reference declares.",
        "Allocate the output with the shape that the message names.",
    ),
    "dtype": Reason(
        _F,
        "wrong dtype",
        "An output that the entry returned has another dtype than the reference declares.",
        "Allocate the output with the dtype that the message names.",
    ),
    "not-returned": Reason(
        _F,
        "outputs not returned",
        "The entry takes no output by name, so it must return them: one tensor, a tuple in the declared order, or a "
        "dict by name; each a plain torch.Tensor.",
        "Return the outputs, or take them as parameters and write them in place.",
    ),
    "not-finite": Reason(
        _F,
        "NaN or Inf where the reference has numbers",
        "The output has non-finite elements at places where the oracle's value is finite, or the other way round.",
        "Look at the indices in the message: a masked load without `other`, an overflow before the maximum is "
        "subtracted, 0/0 in an empty tile are the usual causes.",
    ),
    "unwritten": Reason(
        _F,
        "elements never written",
        "Outputs are poisoned before each call; these elements still held the poison afterwards, in two calls with "
        "different poison.",
        "The grid or a mask leaves them out: compare the indices with the tile sizes.",
    ),
    "out-of-bounds": Reason(
        _F,
        "wrote outside its outputs",
        "A guard zone around an input or output changed during the call.",
        "Mask the store; the message says beside which tensor, and how many bytes away.",
    ),
    "input-changed": Reason(
        _F,
        "wrote to an input",
        "An input tensor had other bits after the call than before it.",
        "Write to the outputs only; take a copy if the algorithm works in place.",
    ),
    "raised": Reason(
        _F,
        "raised an exception",
        "The kernel file, or its entry, raised in Python.",
        "The log shows the traceback; the reproduce command repeats this call alone.",
    ),
    "exited": Reason(
        _F,
        "process ended by itself",
        "The candidate process ended during the call without an answer (for example through sys.exit, with code 0 or "
        "another).",
        "A kernel must return from its entry; remove the exit.",
    ),
    "crashed": Reason(
        _F,
        "process crashed",
        "The candidate process died of a signal; the log holds its last lines.",
        "Usually an access outside an array in host code or in the interpreter.",
    ),
    "gpu-fault": Reason(
        _F,
        "GPU fault",
        "The launch left a CUDA error (illegal memory access, misaligned address, launch failure); the context is "
        "lost, so the process was replaced.",
        "Run the reproduce command under compute-sanitizer to see the line.",
    ),
    "hang": Reason(
        _F,
        "did not return before the deadline",
        "The call was still running at the referee's deadline and the process was killed.",
        "Look for a loop without end, a barrier that not all threads reach, or a spin on a flag.",
    ),
    "out-of-memory": Reason(
        _F,
        "out of memory",
        "The candidate went over its memory limit, on the host or on the GPU.",
        "Allocate less; workspaces belong into prepare(case).",
    ),
    "refused": Reason(
        _F,
        "answer refused",
        "The candidate sent something that the protocol does not allow.",
        "A kernel has no business with the referee's socket; remove that code.",
    ),
    # correctness
    "wrong": Reason(
        _F,
        "wrong values",
        "The error against the float64 oracle is larger than an honest implementation in the contract's precision "
        "makes on the same inputs (docs/correctness.md has the gates).",
        "The message says where the bad elements sit; the reproduce command repeats this case and draw.",
    ),
    "not-repeatable": Reason(
        _F,
        "two runs differ",
        "The reference asks for bitwise repeatable results, and two calls on the same inputs differ.",
        "Look for atomics on floats, a missing barrier, or a read of uninitialised memory.",
    ),
    "batch-dependent": Reason(
        _F,
        "depends on its batch",
        "The reference asks for batch invariance, and one entry alone has other bits than the same entry in a batch.",
        "Choose tiles and splits by what an entry needs, not by how many entries there are.",
    ),
    # sanitize
    "sanitizer-memcheck": Reason(
        _F,
        "access outside its tensors",
        "compute-sanitizer saw an access beyond the end of an allocation, or a misaligned one, although the outputs "
        "were right. Each tensor had an allocation of its own exact size.",
        "Mask or align the access at the line shown; the numbers are the first thread's and block's.",
    ),
    "sanitizer-race": Reason(
        _F,
        "race in shared memory",
        "compute-sanitizer saw two threads access the same shared memory with no barrier between them, one of them "
        "writing, although the outputs were right.",
        "Put a barrier between the two lines shown, or let one thread write.",
    ),
    "sanitizer-initcheck": Reason(
        _F,
        "reads memory that nobody wrote",
        "compute-sanitizer saw a read of GPU memory that nothing had written since it was allocated: a workspace, or "
        "an output before its first store.",
        "Write it first, or don't read it.",
    ),
    "sanitizer-sync": Reason(
        _F,
        "barrier that not all threads reach",
        "compute-sanitizer saw a barrier in divergent code, or one that is used wrongly in another way.",
        "Move the barrier out of the condition, so that every thread of the block (or of the mask) reaches it.",
    ),
    "sanitizer-refused": Reason(
        _S,
        "the sanitizer can't work here",
        "compute-sanitizer did not come to a conclusion: it refuses this device or driver, or the kernel does not "
        "start under it. Without it the same calls passed.",
        "Read what it says; virtual machines often lack the debugging interface that it needs.",
    ),
    "sanitizer-slow": Reason(
        _S,
        "the sanitizer took too long",
        "The calls were still running under compute-sanitizer at the deadline, and it had reported nothing by then.",
        "Raise sanitize_timeout_s, or give the reference smaller check cases.",
    ),
    "no-sanitizer": Reason(
        _S,
        "compute-sanitizer is missing",
        "NVIDIA's compute-sanitizer is not installed on this machine.",
        "Install the CUDA toolkit (Debian, Ubuntu: `cuda-sanitizer-13-0` from NVIDIA's repository), or put it on PATH.",
    ),
    "no-gpu": Reason(
        _S,
        "needs a GPU",
        "This rung needs a GPU (or, for Triton kernels, the interpreter) and this machine has none.",
        "Run the same command on a GPU host.",
    ),
    "no-interpreter": Reason(
        _S,
        "needs a GPU",
        "Only Triton has an interpreter on the CPU; this backend's kernels run on a GPU only.",
        "Run the same command on a GPU host.",
    ),
    "interpreter-cost": Reason(
        _S,
        "too large for the interpreter",
        "The case is above the cost cap of the CPU interpreter (interpreter_elements in the configuration).",
        "Nothing to do: a GPU host runs it. Raise the cap to run it here all the same.",
    ),
    "interpreter-dtype": Reason(
        _S,
        "interpreter can't compute in this dtype",
        "Triton's interpreter has no correct arithmetic in this dtype, so a mismatch would prove nothing.",
        "Nothing to do: a GPU host runs it.",
    ),
    "cost": Reason(
        _S,
        "case above the cost cap",
        "The oracle for this case is too large for the pull-request tier.",
        "Nothing to do; `--tier full` runs it.",
    ),
    "earlier-rung": Reason(
        _S,
        "an earlier rung did not pass",
        "This rung says nothing useful about a kernel that was stopped earlier.",
        "Fix the earlier rung first.",
    ),
    "reference-only-in-head": Reason(
        _S,
        "reference exists only in this change",
        "Kernels are judged by the references of the base branch, and it has none of this name. A reference is trusted "
        "code, so the one that this change brings was not run.",
        "Let an owner review the reference and merge it first, by itself; the kernel is judged then.",
    ),
    "not-requested": Reason(_S, "not requested", "The rung was left out by --rungs.", "Nothing to do."),
    "no-cases": Reason(
        _B,
        "reference has no case",
        "The reference yields no check case, so nothing was checked; that is never green.",
        "Add check(...) cases to the reference.",
    ),
    # broken
    "reference": Reason(
        _B,
        "reference failed",
        "The reference itself raised, or declares something impossible. That is not the kernel's fault.",
        "Fix the reference; `kernelci doctor` imports each one and shows the traceback.",
    ),
    "unsteady-reference": Reason(
        _B,
        "reference loses its digits",
        "On at least half of the draws the honest implementation in the contract's precision is not finite or has lost "
        "every digit, so nothing can be compared.",
        "Narrow the domain of the inputs, or give `honest` an algorithm that is stable.",
    ),
    "weak-reference": Reason(
        _B,
        "reference accepts a wrong answer",
        "An answer that is wrong on purpose (zeros, a constant, the input, the output of the call before, one tile "
        "missing) passes the comparison in every case, so a kernel that gives it would pass too.",
        "Add cases, or inputs, whose right answer is another: larger outputs, a scale that shows.",
    ),
    "strict-reference": Reason(
        _B,
        "reference refuses an honest answer",
        "The honest implementation, in the contract's precision, fails the reference's own comparison.",
        "Correct `compare`, or give `honest` the algorithm that a kernel may use.",
    ),
    "idle-input": Reason(
        _B,
        "an input makes no difference",
        "With another value of this input the old answer is still right in every case, so a kernel that ignores the "
        "input would pass.",
        "Add a case in which the input matters: a value of a scalar whose omission shows, a mask that masks.",
    ),
    "candidate-start": Reason(
        _B,
        "candidate could not start",
        "The process that is to run kernels did not come up; no kernel code had run yet.",
        "See the log; `kernelci doctor` checks the same steps one by one.",
    ),
    "gpu-sick": Reason(
        _B,
        "GPU does not answer",
        "After a fault the GPU failed its health check, so no further kernel can be judged here.",
        "Look at `nvidia-smi` and the kernel log (Xid); the runner needs attention.",
    ),
    "rung-error": Reason(
        _B,
        "rung raised",
        "The rung's own code raised an exception that it should not raise.",
        "Report it with the log: it is a bug in kernelci, or in a rung of this repository.",
    ),
    # errors of the tool
    "git": Reason(
        None,
        "git can't give the commits",
        "The folder lies in no git repository, or lacks a commit or the history between the two commits.",
        "Check out with `fetch-depth: 0`, and name two commits that this repository has.",
    ),
    "change-too-large": Reason(
        None,
        "change is too large",
        "The kernels of a change are copied as data before they are judged, and there is a limit to it.",
        "Split the change; kernels are source files.",
    ),
    "mixture": Reason(
        None,
        "reports don't belong together",
        "Shards can be merged only if they drew with one seed, on machines of one kind, for the same two commits.",
        "Run all shards from one `kernelci plan`, on runners with the same label.",
    ),
    "configuration": Reason(
        None,
        "configuration is wrong",
        "A flag, an environment variable or a key in [tool.kernelci] has a value that can't be used.",
        "The message names the key and what it takes.",
    ),
    "duplicate-name": Reason(
        None,
        "two kernels of one name",
        "A kernel's name is its reference and its file's stem (or the card's name); two files give the same.",
        "Rename one file, or give one card a `name`.",
    ),
    "report": Reason(
        None,
        "results.json can't be read",
        "The file is truncated, of another schema version, too large, or holds something that the schema forbids.",
        "Make it again with `kernelci run`; a report of another version needs that version of kernelci.",
    ),
    "output-folder": Reason(
        None,
        "output folder can't be written",
        "The folder given by --out can't be created or written.",
        "Name another with --out.",
    ),
    "no-kernels": Reason(
        None,
        "no kernel found",
        "The kernels folder holds no kernel that matches what was asked for.",
        "`kernelci list` shows the names; `kernelci new` makes a first one.",
    ),
    "nothing-to-do": Reason(
        None,
        "nothing was executed",
        "Every rung of every kernel was skipped. That is never reported as success.",
        "Read the reasons in the report; usually a GPU or a package is missing.",
    ),
    "runner": Reason(
        None,
        "runner is broken",
        "kernelci could not do its own work on this machine.",
        "`kernelci doctor` shows what is missing.",
    ),
    "github": Reason(
        None,
        "GitHub did not answer",
        "A request to GitHub failed, or went over its rate limits, and went on doing so through all retries.",
        "Run the command again later; nothing that was posted is posted twice.",
    ),
    "token": Reason(
        None,
        "token missing or refused",
        "There is no token in GITHUB_TOKEN, GitHub does not know it, or it lacks the permission that the message names.",
        "Give the job the permission under `permissions:`, and pass the token as GITHUB_TOKEN.",
    ),
    "event": Reason(
        None,
        "event can't be used",
        "The command wants the file of a workflow_run event that a pull_request run set off; this is another one.",
        "Call it from a workflow on `workflow_run`; `kernelci init` writes one.",
    ),
    "pull-request": Reason(
        None,
        "pull request not found",
        "No open pull request, or more than one, has this head repository and commit.",
        "Close the others, or push a commit of its own to each branch.",
    ),
    "artifact-missing": Reason(
        None,
        "run left no report",
        "The run has no artifact of the expected name for this attempt, or it has expired.",
        "Look at the run's log: it ended before it could upload. Run it again.",
    ),
    "artifact": Reason(
        None,
        "artifact refused",
        "The archive holds links, paths out of its folder, names twice, or more than its limits allow; nothing was unpacked.",
        "Honest runs don't write such archives: look at what the change does to the workflow.",
    ),
    "superseded": Reason(
        None,
        "superseded",
        "The pull request is closed or has a newer head, or a newer attempt of the run speaks for it.",
        "Nothing to do: the newer run posts its own report.",
    ),
    "bug": Reason(None, "bug in kernelci", "Something happened that was not foreseen.", "Please report it."),
}


def outcome_of(code: str) -> Outcome:
    """The outcome to which a reason belongs. Raises ValueError for an unknown code or an error of the tool."""
    reason = REASONS.get(code)
    if reason is None or reason.outcome is None:
        raise ValueError(f"unknown reason {code!r}")
    return reason.outcome
