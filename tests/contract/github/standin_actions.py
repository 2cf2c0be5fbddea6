"""Actions of the stand-in: runs, jobs and artifacts; what is run again, and what is started."""

from typing import Any

from standin import ROUTES, SHAPES, GitHub, missing, overlaid, page


def get_run(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    return overlaid(SHAPES["run"], hub.runs[int(number)]) if int(number) in hub.runs else missing()


def list_runs(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    found = [each for each in hub.runs.values() if query.get("head_sha") in (None, each["head_sha"])]
    found = [each for each in found if query.get("branch") in (None, each["head_branch"])]
    found = [each for each in found if query.get("event") in (None, each["event"])]
    shown = [overlaid(SHAPES["run"], each) for each in reversed(found)]
    return {"total_count": len(shown), "workflow_runs": page(shown, query)}


def list_jobs(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = [overlaid(SHAPES["job"], {"run_id": int(number), **each}) for each in hub.jobs.get(int(number), ())]
    return {"total_count": len(found), "jobs": page(found, query)}


def list_artifacts(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = [overlaid(SHAPES["artifact"], each) for each in hub.artifacts.get(int(number), ())]
    return {"total_count": len(found), "artifacts": page(found, query)}


def download(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    return 302, None, {"Location": f"{hub.url}/storage/{number}"}


def rerun(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    hub.rerun.append(int(number))
    return 201, {}, {}


def dispatch(hub: GitHub, query: dict[str, str], body: Any, workflow: str) -> Any:
    hub.dispatched.append({"workflow": workflow, **body})
    return 204, None, {}


ROUTES += [
    ("GET", "REPO/actions/runs", list_runs),
    ("GET", r"REPO/actions/runs/(\d+)", get_run),
    ("GET", r"REPO/actions/runs/(\d+)/artifacts", list_artifacts),
    ("GET", r"REPO/actions/runs/(\d+)/jobs", list_jobs),
    ("GET", r"REPO/actions/artifacts/(\d+)/zip", download),
    ("POST", r"REPO/actions/runs/(\d+)/rerun(?:-failed-jobs)?", rerun),
    ("POST", r"REPO/actions/workflows/([^/]+)/dispatches", dispatch),
]
