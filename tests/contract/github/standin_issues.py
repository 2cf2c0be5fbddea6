"""Issues of the stand-in: listed by label and state, created, changed; and what labels a pull request got when."""

import json
from pathlib import Path
from typing import Any

from standin import HTML, REPOSITORY, ROUTES, GitHub, missing, overlaid, page, refused

SHAPE: dict[str, Any] = json.loads((Path(__file__).parent / "shape_issue.json").read_text(encoding="utf-8"))
EVENT: dict[str, Any] = json.loads((Path(__file__).parent / "shape_event.json").read_text(encoding="utf-8"))
LONGEST = 65_536


def shown(hub: GitHub, issue: dict[str, Any]) -> Any:
    labels = [{**SHAPE["labels"][0], "name": name} for name in issue["labels"]]
    url = f"{HTML}/{REPOSITORY}/issues/{issue['number']}"
    changes = {**issue, "user": hub.user(issue["user"]), "labels": labels, "html_url": url}
    return overlaid(SHAPE, changes)


def too_long(body: Any) -> bool:
    return len(body.get("body") or "") > LONGEST


def listed(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    state, labels = query.get("state", "open"), {name for name in query.get("labels", "").split(",") if name}
    found = [each for each in hub.issues if state in ("all", each["state"]) and labels <= set(each["labels"])]
    return page([shown(hub, each) for each in reversed(found)], query)


def create(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    if too_long(body):
        return refused("body is too long (maximum is 65536 characters)")
    issue = {"number": hub.number(), "state": "open", "state_reason": None, "user": hub.login, "labels": [], **body}
    hub.issues.append(issue)
    return 201, shown(hub, issue), {}


def edit(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = next((each for each in hub.issues if each["number"] == int(number)), None)
    if found is None:
        return missing()
    if too_long(body):
        return refused("body is too long (maximum is 65536 characters)")
    found.update(body)
    return shown(hub, found)


def events(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    mine = [each for each in hub.events if each["pull"] == int(number)]
    return page([shown_event(hub, each) for each in mine], query)


def shown_event(hub: GitHub, each: dict[str, Any]) -> Any:
    plain = {key: each[key] for key in ("id", "event", "created_at")}
    return overlaid(EVENT, {**plain, "actor": hub.user(each["actor"]), "label": {"name": each["label"]}})


ROUTES += [
    ("GET", r"REPO/issues/(\d+)/events", events),
    ("GET", "REPO/issues", listed),
    ("POST", "REPO/issues", create),
    ("PATCH", r"REPO/issues/(\d+)", edit),
]
