"""JUnit XML, which every CI system reads: a suite per kernel, a case per row of a rung (or per rung without rows)."""

import msgspec
from junit_xml import TestCase, TestSuite, to_xml_report_string

from kernelci import digest, inert, second
from kernelci.model import Finding, KernelReport, Report, Row, RungResult
from kernelci.reasons import REASONS, Outcome
from kernelci.reporters import Context


def render(report: Report, context: Context) -> str:
    """FAILED is a failure, BROKEN and INVALID are errors, SKIPPED is skipped."""
    suites = [_suite(kernel, report) for kernel in report.kernels]
    suites += [_second(line, report) for line in second.lines(report)]
    return str(to_xml_report_string(suites, encoding="utf-8"))


def _suite(kernel: KernelReport, report: Report) -> TestSuite:
    cases = [_case(kernel, rung, row) for rung in kernel.rungs for row in (rung.rows or (None,))]
    # A rung's time belongs to all its rows together, so it stands here and is not spread over them.
    properties = {f"duration_s {inert.line(rung.rung)}": f"{rung.duration_s:.3f}" for rung in kernel.rungs}
    return TestSuite(
        inert.line(kernel.name), cases, timestamp=inert.line(report.started_at), properties=properties or None
    )


def _second(line: second.Line, report: Report) -> TestSuite:
    """What the change's own judge says: a failure is one; what it says passed is skipped, as nobody vouches for it."""
    titled = msgspec.structs.replace(line.kernel, name=line.title)
    suite = _suite(titled, report)
    for case in suite.test_cases:
        if not (case.is_failure() or case.is_error() or case.is_skipped()):
            case.add_skipped_info(f"says passed. {second.CAVEAT}")
    return suite


def _case(kernel: KernelReport, rung: RungResult, row: Row | None) -> TestCase:
    parts = (rung.rung, row.case, row.target, row.draw) if row else (rung.rung,)
    case = TestCase(
        inert.line(" ".join(part for part in parts if part)),
        classname=inert.line(kernel.name),
        file=inert.line(kernel.path),
        elapsed_sec=None if row else rung.duration_s,
    )
    found, outcome = (row.finding, row.outcome) if row else (rung.finding, rung.outcome)
    if found is not None:
        _add(case, outcome, found)
    return case


def _add(case: TestCase, outcome: Outcome, found: Finding) -> None:
    message = inert.line(f"{REASONS[found.reason].title}: {found.message}")
    match outcome:
        case Outcome.SKIPPED:
            case.add_skipped_info(message)
        case Outcome.FAILED:
            case.add_failure_info(message, _details(found), found.reason)
        case _:
            case.add_error_info(message, _details(found), found.reason)


def _details(found: Finding) -> str:
    parts = [inert.clean(found.message)]
    if found.file:
        parts.append(f"at {inert.line(found.file)}:{found.line}")
    if found.log:
        parts.append(f"the kernel's own output (untrusted):\n{inert.clean(found.log)}")
    if command := digest.reproduce(found):
        parts.append(f"reproduce: {command}")
    return "\n\n".join([*parts, f"next: {REASONS[found.reason].next_step}"])
