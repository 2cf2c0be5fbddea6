"""Just-in-time runners at GitHub, for one repository or one group of an organization; used by the broker alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import requests
from github import GithubException
from msgspec import Meta, Struct

from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, HubError, TokenError
from kernelci.hub.client import API, Client, Patience, limited, translated

WORK = "_work"
Token = Callable[[], str]


class Registered(Struct, frozen=True):
    """What GitHub answers: the configuration of a runner that takes one job."""

    encoded_jit_config: Annotated[str, Meta(min_length=1, max_length=200_000)]


class Registrar:
    """Registers runners. `token` is asked before each request, since an App's tokens end after an hour."""

    def __init__(self, place: str, group: int, token: Token, api: str = API, patience: Patience | None = None) -> None:
        if not place:
            raise ConfigError("no place to register runners", hint="set `repository` in [tool.kernelci.runner]")
        self._path = f"/{'repos' if '/' in place else 'orgs'}/{place}/actions/runners/generate-jitconfig"
        self._place, self._group, self._token, self._api = place, group, token, api
        self._patience = patience or Patience(attempts=2, longest_s=10.0, timeout_s=10)

    def jitconfig(self, name: str, labels: tuple[str, ...]) -> tuple[str, float | None]:
        """A fresh runner's configuration, and GitHub's time in seconds since the epoch.

        Raises HubError where GitHub is away, TokenError, ConfigError.
        """
        client = Client(self._place, self._token(), self._api, self._patience)
        now = client.clock()
        body = {"name": name, "runner_group_id": self._group, "labels": list(labels), "work_folder": WORK}
        try:
            return client.post(self._path, body, Registered).encoded_jit_config, now
        except HubError as error:
            cause = error.__cause__
            if isinstance(cause, GithubException) and cause.status < 500 and not limited(cause):
                raise ConfigError(f"GitHub registers no such runner: {error.message}") from error
            raise


def from_credentials(folder: Path, options: RunnerOptions, api: str) -> Token:
    """The token in the file `token` of a folder, or those of the App whose key is `app.pem`. Raises TokenError."""
    token, key = folder / "token", folder / "app.pem"
    if key.is_file():
        return _of_app(key.read_text(encoding="utf-8"), options, api)
    if not token.is_file():
        raise TokenError(f"{folder} holds neither `token` nor `app.pem`", hint="docs/runner.md says how to make one")
    text = token.read_text(encoding="utf-8").strip()
    return lambda: text


def _of_app(key: str, options: RunnerOptions, api: str) -> Token:
    """Installation tokens, each asked for when it is needed."""
    import jwt
    from github import Auth, GithubIntegration

    if not options.app or not options.app_installation:
        raise ConfigError("app.pem is there, and no App is named", hint="set `app` and `app_installation`")

    def fresh() -> str:
        try:
            integration = GithubIntegration(auth=Auth.AppAuth(options.app, key), base_url=api, timeout=10, retry=None)
            return integration.get_access_token(options.app_installation).token
        except (GithubException, requests.RequestException) as error:
            found = translated(error, f"a token of App {options.app}")
            if isinstance(found, TokenError):
                found.hint = "is this the App's key, is it installed there, and is this machine's clock right?"
            raise found from error
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            hint = "it is the App's key in PEM"
            raise TokenError(f"app.pem can't be used: {type(error).__name__}", hint=hint) from error

    return fresh
