"""Requests to GitHub: PyGithub's transport, tenacity's patience, answers decoded into small records.

Every failure ends in one of our errors. A request that creates something is never blindly sent again: after an answer
that leaves it open whether the thing was created, the caller's `posted` looks first.
"""

import datetime
import email.utils
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import requests
import tenacity
from github import Auth, Github, GithubException, RateLimitExceededException
from msgspec import Struct

from kernelci.errors import HubError, KernelciError, TokenError

API = "https://api.github.com"
PER_PAGE = 100
T = TypeVar("T")


class Patience(Struct, frozen=True):
    """How long to go on with one request."""

    attempts: int = 6
    backoff_s: float = 1.0
    longest_s: float = 120.0
    """A rate limit that ends later than this is an error at once: a hosted minute costs more than a rerun."""
    secondary_s: float = 60.0
    timeout_s: int = 30
    pace_s: float = 0.5
    """GitHub asks for a pause between writes."""


class Client:
    """GitHub's API with a token, for one repository."""

    def __init__(self, repository: str, token: str, api: str = API, patience: Patience | None = None) -> None:
        if not token:
            raise TokenError("no token: GITHUB_TOKEN is not set")
        self.repository = repository
        self.api = api.rstrip("/")
        self.token = token
        self.patience = patience or Patience()
        self._requester = Github(
            auth=Auth.Token(token),
            base_url=self.api,
            timeout=self.patience.timeout_s,
            retry=None,
            seconds_between_requests=0,
            seconds_between_writes=self.patience.pace_s,
            user_agent="kernelci",
        ).requester

    def get(self, path: str, kind: type[T], **parameters: Any) -> T:
        """One object. `path` is relative to the repository, or absolute with a leading slash."""
        return decoded(self._patiently("GET", path, parameters=parameters or None), kind)

    def find(self, path: str, kind: type[T], **parameters: Any) -> T | None:
        """One object, or None where it does not exist or the token may not see it."""
        try:
            return self.get(path, kind, **parameters)
        except TokenError as error:
            if isinstance(error.__cause__, GithubException) and error.__cause__.status in (403, 404):
                return None
            raise

    def pages(self, path: str, kind: type[T], key: str = "", limit: int = 5000, **parameters: Any) -> Iterator[T]:
        """All objects of a list, page by page, at most `limit`. `key` is where an answer that is no list holds it."""
        for page in range(1, limit // PER_PAGE + 1):
            answer = self._patiently("GET", path, parameters={**parameters, "per_page": PER_PAGE, "page": page})
            found = decoded(answer[key] if key and isinstance(answer, dict) else answer, list[kind])  # type: ignore[valid-type]
            yield from found
            if len(found) < PER_PAGE:
                return

    def post(self, path: str, body: dict[str, Any], kind: type[T], posted: Callable[[], T | None] = lambda: None) -> T:
        """Create something; `posted` finds it where an earlier attempt has created it after all."""
        answer = self._patiently("POST", path, body, posted=posted)
        return answer if isinstance(answer, Struct) else decoded(answer, kind)  # type: ignore[return-value]

    def patch(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        """Change something."""
        return decoded(self._patiently("PATCH", path, body), kind)

    def clock(self) -> float | None:
        """GitHub's own time, in seconds since the epoch, as its answers say. None where they don't."""
        headers: dict[str, Any] = {}
        try:
            for attempt in self.retrying():
                with attempt:
                    headers = self._requester.requestJsonAndCheck("GET", "/rate_limit")[0]
        except (GithubException, requests.RequestException) as error:
            raise translated(error, "GET /rate_limit") from error
        try:
            return email.utils.parsedate_to_datetime(str(headers.get("date"))).timestamp()
        except ValueError:
            return None

    def _patiently(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: dict[str, Any] | None = None,
        posted: Callable[[], Any] | None = None,
    ) -> Any:
        url = path if path.startswith("/") else f"/repos/{self.repository}/{path}".rstrip("/")
        try:
            for attempt in self.retrying():
                with attempt:
                    if posted and attempt.retry_state.attempt_number > 1 and (found := posted()) is not None:
                        return found
                    return self._requester.requestJsonAndCheck(verb, url, parameters=parameters, input=body)[1]
        except (GithubException, requests.RequestException) as error:
            raise translated(error, f"{verb} {url}") from error
        raise AssertionError("tenacity returns or raises")

    def retrying(self) -> tenacity.Retrying:
        """The loop around one request: 5xx, broken connections, timeouts and rate limits are tried again."""
        return tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.patience.attempts),
            wait=self._wait,
            retry=tenacity.retry_if_exception(self._again),
            reraise=True,
        )

    def _again(self, error: BaseException) -> bool:
        if isinstance(error, requests.RequestException):
            return not isinstance(error, requests.exceptions.InvalidURL)
        if not isinstance(error, GithubException):
            return False
        if limited(error):
            return self._limit_s(error) <= self.patience.longest_s
        return error.status >= 500

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        backoff = self.patience.backoff_s * 2.0 ** (state.attempt_number - 1)
        if isinstance(error, GithubException) and limited(error):
            return max(self._limit_s(error), backoff)
        return min(backoff, self.patience.longest_s)

    def _limit_s(self, error: GithubException) -> float:
        """How long a rate limit asks us to wait."""
        headers = _headers(error)
        if (after := headers.get("retry-after", "")).isdigit():
            return float(after)
        if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
            return max(float(headers["x-ratelimit-reset"]) - time.time(), 0) + 1
        return self.patience.secondary_s


def limited(error: GithubException) -> bool:
    """Whether a rate limit, of either kind, refused the request. Such a request was not executed."""
    if isinstance(error, RateLimitExceededException) or error.status == 429:
        return True
    return error.status == 403 and "retry-after" in _headers(error)


def _headers(error: GithubException) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}


def decoded(answer: Any, kind: type[T]) -> T:
    """An answer as a record. Raises HubError for one that has another form."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise HubError(f"GitHub answered in another form than expected: {error}") from error


def translated(error: Exception, what: str) -> KernelciError:
    """A failure in our words, without the token and without GitHub's whole answer."""
    if not isinstance(error, GithubException):
        return HubError(f"{what}: no answer ({type(error).__name__})", hint="run it again later")
    said = error.data.get("message", "") if isinstance(error.data, dict) else ""
    text = f"{what}: {error.status} {' '.join(str(said).split())[:200]}".rstrip()
    if limited(error):
        return HubError(f"{text} (rate limit{_until(error)})", hint="run it again then")
    if error.status in (401, 403):
        return TokenError(text, hint=_permission(what) if error.status == 403 else "the token is not valid")
    if error.status == 404:
        return TokenError(text, hint="it does not exist, or the token may not see it")
    return HubError(text)


def _until(error: GithubException) -> str:
    reset = _headers(error).get("x-ratelimit-reset", "")
    if not reset.isdigit() or len(reset) > 11:
        return ""
    return f" until {datetime.datetime.fromtimestamp(int(reset), datetime.UTC):%H:%M} UTC"


def _permission(what: str) -> str:
    """Which permission of a workflow's token a request needs."""
    needs = (
        ("/check-runs", "checks: write"),
        ("/statuses", "statuses: write"),
        ("/comments", "pull-requests: write"),
        ("/issues", "issues: write"),
        ("/rerun", "actions: write"),
        ("/dispatches", "actions: write"),
        ("/actions/runners", "administration: write"),
        ("/actions", "actions: read"),
        ("/pulls", "pull-requests: read"),
    )
    found = next((permission for part, permission in needs if part in what), "contents: read")
    return f"the token lacks a permission; the job needs `permissions: {found}`"


def connect(repository: str, environ: Mapping[str, str] | None = None, patience: Patience | None = None) -> Client:
    """A client from GITHUB_TOKEN (or GH_TOKEN) and GITHUB_API_URL. Raises TokenError without a token."""
    values = os.environ if environ is None else environ
    token = values.get("GITHUB_TOKEN") or values.get("GH_TOKEN") or ""
    return Client(repository, token.strip(), values.get("GITHUB_API_URL") or API, patience)
