"""The retrieval benchmark: do the questions find the files and symbols that answer them, and how fast?

    python benchmarks/retrieval/measure.py --root PROJECT [--held-back] [--misses]

PROJECT is a project whose context is synced. Each question is asked as an agent would, with its DSL. ripgrep is
asked in the same run, over the same files as the index holds, for the question's words: files by the number of
distinct words that they hold, then by the number of matching lines.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelci.context import opening, words
from kernelci.context.search import Index

HERE = Path(__file__).parent
Ranked = list[tuple[str, str]]
DEPTH = 10


def questions(name: str) -> list[dict[str, Any]]:
    """The questions of a file."""
    return list(tomllib.loads((HERE / name).read_text(encoding="utf-8"))["question"])


def hit(answer: str, file: str, symbol: str) -> bool:
    """Whether a result is this answer: the file, and the symbol if it names one (a class answers for its methods)."""
    path, _, name = answer.partition("::")
    if not file.endswith(path):
        return False
    return not name or symbol == name or symbol.startswith(f"{name}.")


def rank(answers: list[str], found: Ranked) -> int:
    """The place of the first answer among the results, counted from 1; 0 where there is none."""
    for place, (file, symbol) in enumerate(found[:DEPTH], 1):
        if any(hit(answer, file, symbol) for answer in answers):
            return place
    return 0


def file_rank(answers: list[str], found: Ranked) -> int:
    """The same by files alone, which is all that ripgrep can say."""
    files = list(dict.fromkeys(file for file, _ in found))
    return rank([answer.partition("::")[0] for answer in answers], [(file, "") for file in files])


def names_its_answer(question: dict[str, Any]) -> bool:
    """Whether the question holds an identifier of an answer, be it as plain words."""
    asked = "_".join(re.findall(r"[a-z0-9]+", question["ask"].lower()))
    for answer in question["answers"]:
        path, _, symbol = answer.partition("::")
        for name in symbol.split(".") if symbol else [path.rpartition("/")[2].partition(".")[0]]:
            plain = "_".join(re.findall(r"[a-z0-9]+", name.lower()))
            if f"_{plain}_" in f"_{asked}_":
                return True
    return False


class Ripgrep:
    """The baseline: the index's own texts as files, one folder per source, searched by `rg`."""

    def __init__(self, index: Index, folder: Path) -> None:
        self.folder = folder
        self.places: dict[str, list[Path]] = {}
        for record, database in index.shards:
            place = folder / record.name
            self.places.setdefault(record.dsl, []).append(place)
            for path, text in opening.texts(database):
                file = place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")

    def __call__(self, ask: str, dsl: str) -> Ranked:
        asked = [word for word in re.findall(r"[A-Za-z0-9_]+", ask) if word.lower() not in words.STOP and len(word) > 1]
        kinds: Counter[str] = Counter()
        lines: Counter[str] = Counter()
        for word in dict.fromkeys(word.lower() for word in asked):
            command = ["rg", "-i", "-F", "-c", "--no-messages", word, *map(str, self.places[dsl])]
            for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
                file, _, count = line.rpartition(":")
                kinds[file] += 1
                lines[file] += int(count)
        best = sorted(kinds, key=lambda file: (-kinds[file], -lines[file], file))
        return [(file, "") for file in best[:DEPTH]]


def measured(
    asked: list[dict[str, Any]], ask: Callable[[str, str], Ranked]
) -> tuple[list[Ranked], dict[str, list[float]]]:
    """All answers, and the milliseconds that each took: on the wall clock, and of this process's CPU."""
    found: list[Ranked] = []
    times: dict[str, list[float]] = {"wall clock": [], "CPU": []}
    for question in asked:
        wall, cpu = time.perf_counter(), time.process_time()
        found.append(ask(question["ask"], question["dsl"]))
        times["wall clock"].append((time.perf_counter() - wall) * 1e3)
        times["CPU"].append((time.process_time() - cpu) * 1e3)
    return found, times


def spread(taken: list[float]) -> str:
    """Milliseconds in words."""
    ordered = sorted(taken)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    return f"median {statistics.median(taken):.1f} ms, p95 {p95:.1f} ms, longest {ordered[-1]:.1f} ms"


def line(title: str, ranks: list[int]) -> str:
    """A row of the table."""
    share = [sum(0 < rank <= depth for rank in ranks) / len(ranks) for depth in (1, 5, 10)]
    reciprocal = statistics.fmean(1 / rank if rank else 0 for rank in ranks)
    return f"| {title} | {len(ranks)} | {share[0]:.3f} | {share[1]:.3f} | {share[2]:.3f} | {reciprocal:.3f} |"


def tables(title: str, asked: list[dict[str, Any]], found: list[Ranked], judge: Callable[..., int]) -> list[str]:
    """All questions, then by DSL group, then by whether the question names its answer."""
    ranks = [judge(question["answers"], results) for question, results in zip(asked, found, strict=True)]
    rows = [line(f"{title}, all", ranks)]
    for group in dict.fromkeys(question["group"] for question in asked):
        rows.append(line(f"{title}, {group}", [r for q, r in zip(asked, ranks, strict=True) if q["group"] == group]))
    for named, words_ in ((False, "names no identifier of its answer"), (True, "names one")):
        some = [r for q, r in zip(asked, ranks, strict=True) if names_its_answer(q) is named]
        rows += [line(f"{title}, {words_}", some)] if some else []
    return rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--no-ripgrep", action="store_true")
    options = parser.parse_args()
    asked = questions("held_back.toml" if options.held_back else "questions.toml")
    index = Index(options.root)

    def ask(text: str, dsl: str) -> Ranked:
        answer = index.search(text, dsl=dsl, limit=DEPTH)
        return [(result.file, result.symbol) for result in answer.results]

    ask(asked[0]["ask"], "")
    found, times = measured(asked, ask)
    print("| | questions | hit@1 | hit@5 | hit@10 | MRR |\n| :-- | --: | --: | --: | --: | --: |")
    print("\n".join(tables("kernelci", asked, found, rank)))
    print(line("kernelci, by file", [file_rank(q["answers"], r) for q, r in zip(asked, found, strict=True)]))
    latency = [("kernelci", times)]
    if not options.no_ripgrep and shutil.which("rg"):
        with tempfile.TemporaryDirectory() as folder:
            base, base_times = measured(asked, Ripgrep(index, Path(folder)))
        print("\n".join(tables("ripgrep, by file", asked, base, file_rank)))
        latency.append(("ripgrep", {"wall clock": base_times["wall clock"]}))
    for name, clocks in latency:
        print("\n".join(f"{name}, {clock}: {spread(taken)}" for clock, taken in clocks.items()))
    if options.misses:
        _show_misses(asked, found)
    return 0


def _show_misses(asked: list[dict[str, Any]], found: list[Ranked]) -> None:
    for question, results in zip(asked, found, strict=True):
        place = rank(question["answers"], results)
        if place == 0 or place > 5:
            print(f"\n{question['id']} ({place}) {question['ask']}\n  want {question['answers']}")
            print("\n".join(f"  {file.rpartition('/')[2]}::{symbol}" for file, symbol in results[:6]))


if __name__ == "__main__":
    sys.exit(main())
