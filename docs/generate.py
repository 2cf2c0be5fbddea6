"""Writes the pages that are made from the code: `python docs/generate.py`; --check only says which are stale."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from kernelci import config, feedback, results
from kernelci.reasons import REASONS

DOCS = Path(__file__).parent
NOTICE = "<!-- Made by docs/generate.py; change the code, not this page. -->"


def pages() -> dict[str, str]:
    """Every generated page by its file name."""
    return {
        "results.schema.json": json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
        "feedback.schema.json": json.dumps(feedback_schema(), indent=2, ensure_ascii=False) + "\n",
        "configuration.md": configuration(),
        "reasons.md": reasons(),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json, with its dialect and title."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "kernelci results.json"}
    return head | results.schema()


def feedback_schema() -> dict[str, Any]:
    """The JSON Schema of what `kernelci feedback --json` prints."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "kernelci feedback"}
    return head | msgspec.json.schema(feedback.Feedback)


def options(of: type[msgspec.Struct]) -> list[str]:
    """A table of a record's fields."""
    return [
        "| option | type | default | meaning |",
        "| :-- | :-- | :-- | :-- |",
        *(
            f"| `{field.name}` | {kind(field.type)} | {shown(field.default)} | {description(field.type)} |"
            for field in msgspec.inspect.type_info(of).fields  # type: ignore[attr-defined]
        ),
    ]


def gate() -> list[str]:
    """The gate's tables."""
    tables = (
        ("`[tool.kernelci.gate]`", config.GateOptions),
        ("`[[tool.kernelci.gate.rule]]`: a later rule overrides what it names", config.GateRule),
        ("`[[tool.kernelci.gate.waiver]]`: an expired one is said and holds no more", config.Waiver),
    )
    lines = ["", "## The gate of times"]
    for title, of in tables:
        lines += ["", title, "", *options(of)]
    return lines


def runner() -> list[str]:
    """The table of a GPU host."""
    head = "`[tool.kernelci.runner]`, in a file of the host that no job can write ([runner.md](runner.md))"
    return ["", "## A GPU host", "", head, "", *options(config.RunnerOptions)]


def budget() -> list[str]:
    """The budget's table."""
    return ["", "## The budget of a pull request", "", "`[tool.kernelci.budget]`", "", *options(config.BudgetOptions)]


def configuration() -> str:
    """The tables of options."""
    return "\n".join(
        [
            NOTICE,
            "# Configuration",
            "",
            "Each option has a default; `[tool.kernelci]` in pyproject.toml (or kernelci.toml) overrides it, then the",
            "environment variable `KERNELCI_` and the option's name in capitals, then the flag of the command line.",
            "Lists in environment variables are separated by commas. Unknown keys are refused.",
            "",
            *options(config.Config),
            *gate(),
            *budget(),
            *runner(),
            "",
        ]
    )


def kind(found: Any) -> str:
    """A type in words."""
    match found:
        case msgspec.inspect.Metadata():
            return kind(found.type)
        case msgspec.inspect.StrType():
            return "text"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType():
            return f"whole number{bound(found)}"
        case msgspec.inspect.FloatType():
            return f"number{bound(found)}"
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return f"list of {kind(found.item_type)}"
        case msgspec.inspect.StructType():
            return "tables"
        case msgspec.inspect.DateType():
            return "date"
        case msgspec.inspect.LiteralType():
            return "one of " + ", ".join(f"`{value}`" for value in found.values if value)
        case msgspec.inspect.UnionType():
            return " or ".join(kind(each) for each in found.types if not isinstance(each, msgspec.inspect.NoneType))
    raise TypeError(f"no words for {found}")


def bound(found: Any) -> str:
    """The lower bound of a number in words."""
    if found.ge is not None:
        return f", at least {found.ge:g}"
    return f", above {found.gt:g}" if found.gt is not None else ""


def shown(value: Any) -> str:
    """A default as it would stand in TOML."""
    if value is msgspec.NODEFAULT:
        return "must be given"
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def description(found: Any) -> str:
    """What the option's annotation says of it."""
    return str((found.extra_json_schema or {})["description"])


def reasons() -> str:
    """Every reason of an outcome, and every error of the tool."""
    parts = [NOTICE, "# Reasons and errors", "", "`kernelci explain CODE` prints one of these.", ""]
    for code, reason in REASONS.items():
        outcome = f"{reason.outcome}" if reason.outcome else "an error of the tool itself"
        parts += [
            f"## `{code}`: {reason.title}",
            "",
            f"{outcome}. {reason.meaning}",
            "",
            f"Next: {reason.next_step}",
            "",
        ]
    return "\n".join(parts)


def main() -> int:
    """Write, or check; exit code 1 where a page is stale."""
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale:
        print(f"{'stale' if '--check' in sys.argv else 'written'}: {', '.join(stale)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
