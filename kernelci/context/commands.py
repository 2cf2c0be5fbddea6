"""`kernelci context …` and `kernelci mcp`: parse, call one function, print."""

from pathlib import Path

import click

DSL = click.option("--dsl", default="", help="Prefer this DSL: cutedsl, tilelang, triton, ptx, cuda.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def context() -> None:
    """Look up a DSL, an instruction, or your own kernels. In the versions that are installed."""


@context.command()
@click.argument("sources", nargs=-1)
@click.option("--offline", is_flag=True, help="Index what is here; fetch nothing.")
@click.pass_obj
def sync(root: Path, sources: tuple[str, ...], offline: bool) -> int:
    """Fetch and index the given SOURCES, or all that changed."""
    from kernelci.context import sync as syncing

    done = syncing.sync(
        root, sources, offline=offline, progress=lambda one: click.echo(_line(one.name, one.outcome, one.said))
    )
    return 4 if any(one.outcome == "failed" for one in done) else 0


def _line(name: str, outcome: str, said: str) -> str:
    return f"{name:<14}  {outcome:<9}  {said}".rstrip()


@context.command()
@JSON
@click.pass_obj
def status(root: Path, as_json: bool) -> int:
    """Show what is indexed, and what is stale or missing. By the versions that are installed."""
    import msgspec

    from kernelci.context import status as stating

    found = stating.states(root)
    click.echo(msgspec.json.format(msgspec.json.encode(found), indent=1) if as_json else stating.table(found))
    return 0


@context.command()
@click.argument("question")
@DSL
@click.option("--limit", type=click.IntRange(1, 50), default=8, show_default=True)
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out this many: the next page.")
@JSON
@click.pass_obj
def search(root: Path, question: str, dsl: str, limit: int, skip: int, as_json: bool) -> int:
    """Find what answers QUESTION. It is words, an identifier, or an instruction."""
    import msgspec

    from kernelci.context import showing
    from kernelci.context.search import Index

    answer = Index(root).search(question, dsl=dsl, limit=limit, skip=skip)
    click.echo(
        msgspec.json.format(msgspec.json.encode(answer), indent=1) if as_json else showing.answer(answer, skip, dsl)
    )
    return 0 if answer.results else 3


@context.command(name="open")
@click.argument("place", metavar="SOURCE:PATH")
@click.option("--line", type=click.IntRange(1), default=1, show_default=True)
@click.option("--count", type=click.IntRange(1, 400), default=120, show_default=True, help="Lines to show.")
@JSON
@click.pass_obj
def open_(root: Path, place: str, line: int, count: int, as_json: bool) -> int:
    """Show lines of SOURCE:PATH, as a search printed it."""
    import msgspec

    from kernelci.context import opening, showing
    from kernelci.context.search import Index

    page = opening.page(Index(root), place, line=line, count=count)
    click.echo(msgspec.json.format(msgspec.json.encode(page), indent=1) if as_json else showing.page(page))
    return 0


@click.command()
@click.pass_obj
def mcp(root: Path) -> int:
    """Serve search, checks, runs and feedback to an agent (MCP). Over standard input and output."""
    from kernelci.errors import not_installed

    try:
        from kernelci.context import mcp as serving
    except ModuleNotFoundError as error:
        raise not_installed(error.name, "context") from error
    serving.server(root).run("stdio")
    return 0
