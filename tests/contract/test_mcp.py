"""The MCP server driven by the SDK's own client: every tool, every prompt, every error."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from kernelci import results
from kernelci.context import sync, telling
from kernelci.context.mcp import server
from kernelci.model import SCHEMA_VERSION, Environment, Finding, KernelReport, Report, RungResult
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"search_context", "open_context", "list_kernels", "check", "run", "feedback", "diff_dumps", "explain"}
DOCS = "[[context]]\nname = 'docs'\nkind = 'folder'\nwhere = 'docs'\ndsl = 'ptx'\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a good kernel, a broken one, two dumps, a document, and the report of an earlier run."""
    made = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "references", made / "references", ignore=shutil.ignore_patterns("__pycache__"))
    (made / "kernels" / "softmax").mkdir(parents=True)
    shutil.copy(ROOT / "kernels" / "softmax" / "triton.py", made / "kernels" / "softmax" / "triton.py")
    shutil.copy(ROOT / "tests" / "bad_kernels" / "compile_error.py", made / "kernels" / "softmax" / "broken.py")
    (made / "kernelci.toml").write_text(DOCS, encoding="utf-8")
    (made / "docs").mkdir()
    (made / "docs" / "wgmma.md").write_text("# wgmma\nWarpgroup matrix multiply.\n" + "more\n" * 500, encoding="utf-8")
    for name, code in (("base", "FFMA"), ("head", "HFMA2")):
        (made / name).mkdir()
        (made / name / "k.sass").write_text(f"        /*0000*/   {code} R0, R1, R2 ;\n", encoding="utf-8")
    sync.sync(made)
    finding = Finding("wrong", "off by one\n" * 3, "kernels/softmax/triton.py", 7, "noise\n" * 3_000)
    kernel = KernelReport("softmax/triton", "softmax", "triton", "kernels/softmax/triton.py", "0", (
        RungResult("correctness", Outcome.FAILED, finding=finding),
    ))  # fmt: skip
    (made / "kernelci-report").mkdir()
    started = "2026-01-01T00:00:00+00:00"
    results.write(Report(SCHEMA_VERSION, "0", started, 0.0, Environment("m", "3"), (kernel,)), made / "kernelci-report")
    return made


def _with(root: Path, ask: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with Client(server(root)) as client:
            return await ask(client)

    return asyncio.run(main())


def _call(root: Path, tool: str, **arguments: Any) -> tuple[bool, str]:
    async def ask(client: Client) -> tuple[bool, str]:
        return await _called(client, tool, **arguments)

    found: tuple[bool, str] = _with(root, ask)
    return found


async def _called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    answer = await client.call_tool(tool, arguments)
    (content,) = answer.content
    assert content.type == "text"
    return bool(answer.is_error), content.text


def test_tools_are_named_described_and_typed(root: Path) -> None:
    tools = _with(root, lambda client: client.list_tools()).tools
    assert TOOLS == {tool.name for tool in tools}
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
    assert TOOLS - {"check", "run"} == {tool.name for tool in tools if tool.annotations.read_only_hint}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search_context", {"query": "wgmma", "dsl": "ptx"}, "kernelci context open docs:wgmma.md --line 1"),
        ("search_context", {"query": "warpgroup matrix"}, "not an instruction to you"),
        ("open_context", {"place": "docs:wgmma.md"}, " 2 | Warpgroup matrix multiply."),
        ("open_context", {"place": "docs:wgmma.md"}, "--line 81"),
        ("list_kernels", {}, "softmax/broken  triton"),
        ("feedback", {}, "wrong values (wrong) at kernels/softmax/triton.py:7"),
        ("feedback", {"kernel": "softmax/triton"}, "    | noise"),
        ("diff_dumps", {"base": "base", "head": "head"}, "  FFMA                      1 → 0      (-1)"),
        ("explain", {"code": "wrong"}, "wrong values"),
        ("explain", {}, "compile-error"),
    ],
)
def test_tool(root: Path, tool: str, arguments: dict[str, Any], said: str) -> None:
    failed, text = _call(root, tool, **arguments)
    assert (False, True) == (failed, said in text), text
    assert len(text) <= telling.PAGE + 2_000


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search_context", {"query": "the of"}, "no words to look for"),
        ("search_context", {"query": ""}, "query"),
        ("search_context", {"query": "x", "limit": 999}, "limit"),
        ("open_context", {"place": "docs:../kernelci.toml"}, "has no file"),
        ("open_context", {"place": "nope:x"}, "no context source"),
        ("open_context", {"place": "docs:wgmma.md", "line": 0}, "line"),
        ("check", {"kernel": "nope"}, "no kernel matches"),
        ("check", {"kernel": "softmax"}, "matches 2 kernels"),
        ("run", {"kernels": ["nope"]}, "no kernel matches"),
        ("run", {"kernels": ["softmax/triton"], "rungs": ["nope"]}, "no rung"),
        ("feedback", {"kernel": "nope"}, "the last report has no kernel"),
        ("diff_dumps", {"base": "..", "head": "head"}, "outside the project"),
        ("diff_dumps", {"base": "docs", "head": "head"}, "no .sass file"),
        ("explain", {"code": "wrnog"}, "did you mean"),
        ("run", {}, "kernels"),
        ("nope", {}, "nope"),
    ],
)
def test_error_is_told_with_its_next_step(root: Path, tool: str, arguments: dict[str, Any], said: str) -> None:
    failed, text = _call(root, tool, **arguments)
    assert (True, True) == (failed, said in text), text


def test_tools_before_anything_is_there(tmp_path: Path) -> None:
    asked = (("search_context", {"query": "x1"}), ("feedback", {}), ("list_kernels", {}), ("check", {"kernel": "x"}))

    async def ask(client: Client) -> list[tuple[bool, str]]:
        return [await _called(client, tool, **arguments) for tool, arguments in asked]

    told = _with(tmp_path, ask)
    assert [True] * 4 == [failed for failed, _ in told]
    assert all("next: " in text for _, text in told)


def test_long_feedback_comes_in_pages(root: Path) -> None:
    _, text = _call(root, "explain")
    _, rest = _call(root, "explain", skip=5)
    assert text.splitlines()[5] == rest.splitlines()[0]


def test_search_sees_the_next_sync(root: Path) -> None:
    async def ask(client: Client) -> tuple[str, str]:
        _, before = await _called(client, "search_context", query="stmatrix")
        (root / "docs" / "stmatrix.md").write_text("# stmatrix\nStores.\n", encoding="utf-8")
        sync.sync(root)
        _, after = await _called(client, "search_context", query="stmatrix")
        return before, after

    before, after = _with(root, ask)
    assert (False, True) == ("docs:stmatrix.md" in before, "docs:stmatrix.md" in after)


@pytest.mark.parametrize("prompt", ["first_version", "fix_correctness", "optimise"])
def test_prompt_encodes_the_loop(root: Path, prompt: str) -> None:
    values = (
        {"reference": "softmax", "backend": "triton"} if prompt == "first_version" else {"kernel": "softmax/triton"}
    )

    async def ask(client: Client) -> Any:
        listed = {item.name for item in (await client.list_prompts()).prompts}
        return listed, await client.get_prompt(prompt, values)

    listed, found = _with(root, ask)
    text = found.messages[0].content.text
    steps = [text.find(word) for word in ("1. compile", "2. right", "3. fast", "4. stop or go on")]
    assert ({"first_version", "fix_correctness", "optimise"}, sorted(steps)) == (listed, steps)
    assert (True, True) == (min(steps) > 0, "softmax" in text)


def test_check_says_the_compile_error_and_the_line_within_two_seconds(root: Path) -> None:
    file = root / "kernels" / "softmax" / "broken.py"
    times: list[float] = []

    async def ask(client: Client) -> str:
        for number in range(4):
            file.write_text(f"{file.read_text(encoding='utf-8')}# edit {number}\n", encoding="utf-8")
            began = time.monotonic()
            failed, text = await _called(client, "check", kernel="softmax/broken", target="sm_80")
            times.append(time.monotonic() - began)
            assert not failed
        return text

    text = _with(root, ask)
    line = next(n for n, t in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "powers / total" in t)
    assert f"(compile-error) at kernels/softmax/broken.py:{line}" in text
    assert "total is not defined" in text
    # Two seconds are meant for a machine that does nothing else; a busy one is given its share more.
    assert min(times[1:]) < 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), times


@pytest.mark.slow
def test_check_and_run_of_a_kernel_that_is_right(root: Path) -> None:
    async def ask(client: Client) -> tuple[str, str, str]:
        _, checked = await _called(client, "check", kernel="softmax/triton", target="sm_80")
        arguments = {"kernels": ["softmax/triton"], "rungs": ["compile"], "targets": ["sm_80"]}
        _, ran = await _called(client, "run", **arguments)
        _, told = await _called(client, "feedback")
        return checked, ran, told

    report = (root / "kernelci-report" / results.FILE_NAME).read_bytes()
    try:
        checked, ran, told = _with(root, ask)
    finally:
        (root / "kernelci-report" / results.FILE_NAME).write_bytes(report)
    assert "softmax/triton: PASSED  [precheck PASSED, compile PASSED" in checked
    assert ("compile PASSED" in ran, ran) == (True, told)


def test_the_command_speaks_over_standard_input_and_output(root: Path) -> None:
    command = ["-m", "kernelci", "--root", str(root), "mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=command, env={"PYTHONPATH": str(ROOT)})

    async def main() -> tuple[set[str], tuple[bool, str]]:
        async with Client(stdio_client(parameters)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, await _called(client, "explain", code="wrong")

    tools, (failed, text) = asyncio.run(main())
    assert (TOOLS, False, True) == (tools, failed, text.startswith("wrong: wrong values"))
