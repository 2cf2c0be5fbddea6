"""Reads a report by NVIDIA's own module and prints it as JSON: `python -I ncu_reading.py FOLDER REPORT LAUNCHES`.

Run in a sandbox, since the module is native code and the report was written beside a kernel. Of the module (Nsight
Compute's "Python Report Interface") it uses what there has been since 2023: ranges, actions, metrics, rule results.
"""

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

KINDS = {"OK": "OK", "OPTIMIZATION": "OPT", "WARNING": "WRN", "ERR": "ERR"}  # as the CSV names them; else INF


def main() -> None:
    """Print what the arguments name."""
    folder, report, most = sys.argv[1:]
    sys.path.insert(0, folder)
    import ncu_report

    context = ncu_report.load_report(report)
    print(json.dumps([launch(ncu_report, each) for _, each in zip(range(int(most)), actions(context), strict=False)]))


def actions(context: Any) -> Iterator[Any]:
    """Every launch of a report."""
    for number in range(context.num_ranges()):
        one = context.range_by_idx(number)
        yield from (one.action_by_idx(place) for place in range(one.num_actions()))


def launch(module: Any, action: Any) -> dict[str, Any]:
    """One launch: name, sizes, metrics with their units, and what the rules say."""
    metrics = dict(filter(None, (metric(action, name) for name in action.metric_names())))
    sizes = {what: [metrics.get(f"launch__{what}_dim_{axis}", [0])[0] for axis in "xyz"] for what in ("grid", "block")}
    rules = [rule(module, each) for each in action.rule_results_as_dicts() if each.get("rule_message")]
    return {"kernel": str(action.name())[:300], "metrics": metrics, "rules": rules, **sizes}


def metric(action: Any, name: str) -> "tuple[str, list[Any]] | None":
    """Its value and unit; None for one that is no finite number."""
    found = action.metric_by_name(name)
    value = found.value() if found is not None and found.has_value() else None
    if not isinstance(value, int | float) or not math.isfinite(value) or "__" not in name:
        return None
    return name[:200], [float(value), str(found.unit())[:40]]


def rule(module: Any, found: dict[str, Any]) -> dict[str, Any]:
    """What a rule says; `speedup` in percent."""
    said, gain = found["rule_message"], (found.get("speedup_estimation") or {}).get("speedup", 0.0)
    kinds = {getattr(module, f"MsgType_{name}", None): kind for name, kind in KINDS.items()}
    text, speedup = str(said.get("message", ""))[:4000], float(gain) if math.isfinite(gain) else 0.0
    return {
        "name": str(found["rule_identifier"])[:100], "kind": kinds.get(said.get("type"), "INF"), "text": text,
        "speedup": speedup,
    }  # fmt: skip


if __name__ == "__main__":
    main()
