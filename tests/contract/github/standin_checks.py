"""Check runs and commit statuses of the stand-in, with GitHub's limits."""

from typing import Any

from standin import ROUTES, SHAPES, GitHub, missing, overlaid, page, refused


def shown_check(hub: GitHub, check: dict[str, Any]) -> Any:
    shown = {key: value for key, value in check.items() if key != "annotations"}
    output = {**check["output"], "annotations_count": len(check["annotations"])}
    return overlaid(SHAPES["check"], {**shown, "output": output})


def list_checks(hub: GitHub, query: dict[str, str], body: Any, sha: str) -> Any:
    found = [each for each in hub.checks if each["head_sha"] == sha and query.get("check_name") in (None, each["name"])]
    return {"total_count": len(found), "check_runs": page([shown_check(hub, each) for each in found], query)}


def too_much(output: dict[str, Any]) -> str:
    if any(len(output.get(name) or "") > 65_535 for name in ("summary", "text")):
        return "summary or text exceeds 65535 characters"
    return "more than 50 annotations" if len(output.get("annotations", ())) > 50 else ""


def change_check(hub: GitHub, check: dict[str, Any], body: Any) -> str:
    output = dict(body.pop("output", {}))
    if wrong := too_much(output):
        return wrong
    check["annotations"] = [*check["annotations"], *output.pop("annotations", ())]
    check["output"] |= output
    check.update(body)
    return ""


def create_check(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    check = {"id": hub.number(), "conclusion": None, "output": {"title": None, "summary": None}, "annotations": []}
    if wrong := change_check(hub, check, dict(body)):
        return refused(wrong)
    hub.checks.append(check)
    return 201, shown_check(hub, check), {}


def edit_check(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = next((each for each in hub.checks if each["id"] == int(number)), None)
    if found is None:
        return missing()
    wrong = change_check(hub, found, dict(body))
    return refused(wrong) if wrong else shown_check(hub, found)


def shown_status(hub: GitHub, status: dict[str, Any]) -> Any:
    return overlaid(SHAPES["status"], {key: value for key, value in status.items() if key != "sha"})


def create_status(hub: GitHub, query: dict[str, str], body: Any, sha: str) -> Any:
    if len(body.get("description") or "") > 140:
        return refused("description is too long (maximum is 140 characters)")
    status = {"sha": sha, "id": hub.number(), **body}
    hub.statuses.insert(0, status)
    return 201, shown_status(hub, status), {}


def list_statuses(hub: GitHub, query: dict[str, str], body: Any, sha: str) -> Any:
    return page([shown_status(hub, each) for each in hub.statuses if each["sha"] == sha], query)


ROUTES += [
    ("GET", r"REPO/commits/([^/]+)/check-runs", list_checks),
    ("POST", "REPO/check-runs", create_check),
    ("PATCH", r"REPO/check-runs/(\d+)", edit_check),
    ("POST", r"REPO/statuses/([0-9a-f]+)", create_status),
    ("GET", r"REPO/commits/([^/]+)/statuses", list_statuses),
]
