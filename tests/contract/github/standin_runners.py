"""Self-hosted runners of the stand-in: just-in-time configurations, an App's tokens, GitHub's clock.

`runners` holds what was registered; names must be new, as at GitHub. `app` is the number and the public key of an App.
"""

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import jwt
from standin import ROUTES, GitHub, missing, overlaid

SHAPES: dict[str, Any] = json.loads((Path(__file__).parent / "shapes_runners.json").read_text(encoding="utf-8"))
ORGANIZATION = "octo-org"
GROUPS = (1, 7)
_TOKENS = re.compile(r"/app/installations/(\d+)/access_tokens")
_right = GitHub._right


def answered(hub: GitHub, method: str, path: str, query: dict[str, str], body: Any, head: dict[str, str]) -> Any:
    match = _TOKENS.fullmatch(path)
    return access_token(hub, head) if match and method == "POST" else _right(hub, method, path, query, body, head)


def access_token(hub: GitHub, head: dict[str, str]) -> Any:
    """A token for an App that proves itself; with a clock that is wrong it can't."""
    number, key = hub.__dict__.get("app", (0, ""))
    try:
        claims = jwt.decode(head.get("authorization", "").split()[-1], key, ["RS256"], leeway=30)
    except (jwt.PyJWTError, IndexError) as error:
        return 401, {"message": f"A JSON web token could not be decoded: {error}", "documentation_url": ""}, {}
    if str(claims["iss"]) != str(number):
        return missing()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    return 201, {**SHAPES["access_token"], "token": hub.token, "expires_at": until}, {}


def register(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    runners = hub.__dict__.setdefault("runners", [])
    if any(each["name"] == body["name"] for each in runners):
        return 409, {"message": f"Already exists - A runner with the name {body['name']} exists"}, {}
    if body["runner_group_id"] not in GROUPS:
        return missing()
    runners.append(body)
    labels = [{"id": number, "name": name, "type": "custom"} for number, name in enumerate(body["labels"])]
    made = overlaid(SHAPES["jitconfig"], {"runner": {"name": body["name"], "id": len(runners), "labels": labels}})
    made["encoded_jit_config"] = base64.b64encode(body["name"].encode()).decode()
    return 201, made, {}


GitHub._right = answered  # before it looks at the token, which an App has none of
ROUTES += [
    ("GET", "/rate_limit", lambda hub, query, body: SHAPES["rate_limit"]),
    ("POST", "REPO/actions/runners/generate-jitconfig", register),
    ("POST", f"/orgs/{ORGANIZATION}/actions/runners/generate-jitconfig", register),
]
