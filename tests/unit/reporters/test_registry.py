import pytest

from kernelci import reporters, results
from kernelci.errors import ConfigError
from kernelci.reporters import Context

KNOWN = (
    "console",
    "csv",
    "feedback",
    "flashinfer-trace",
    "github",
    "github-action-benchmark",
    "html",
    "json",
    "junit",
    "markdown",
    "openmetrics",
    "parquet",
    "pytorch-benchmark",
)


def test_the_formats_are_the_files_of_the_folder() -> None:
    assert KNOWN == reporters.names()


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        reporters.get("pdf")

    assert f"known: {', '.join(KNOWN)}" == caught.value.hint


def test_json_is_the_file_on_disk(reports) -> None:
    report = reports.one_wrong()

    assert results.encode(report) == reporters.get("json").render(report, Context())


@pytest.mark.parametrize("name", ["console", "feedback", "github", "html", "json", "junit", "markdown"])
def test_every_format_renders_to_text(name: str, reports) -> None:
    assert reporters.render(name, reports.one_wrong()).endswith("\n")
