"""Nightly issues against the stand-in: made, kept in step, reopened, closed, and never doubled."""

import datetime
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelci import history
from kernelci.errors import KernelciError
from kernelci.hub.client import Client, Patience
from kernelci.nightly import alert
from kernelci.nightly.changes import Change, changes
from kernelci.nightly.series import events, load
from kernelci.reasons import Outcome

FIRST = datetime.date(2026, 1, 1)
QUICK = Patience(attempts=3, backoff_s=0.01, longest_s=1.0, secondary_s=0.01, timeout_s=5, pace_s=0)


def _day(night: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=night)


class Nights:
    """A history that grows night by night."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0

    def put(self, path: str, data: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)

    def add(self, count: int, time: float | None, cases: str = "c", **more: Any) -> None:
        for night in range(self.now, self.now + count):
            day = _day(night)
            outcome = Outcome.PASSED if time else Outcome.INVALID
            records = [
                history.Measure(
                    day, f"{day}T02:00:00+00:00", "softmax/a", outcome, case, gpu="NVIDIA H200",
                    commit=f"{night:040x}", time_ns=time and time + night % 3, **more,
                )
                for case in cases
            ]  # fmt: skip
            self.put(*history.night_file(records))
        self.now += count

    def say(self, kind: Any, since: int, case: str = "c", **more: Any) -> None:
        night = _day(self.now - 1)
        good, bad = f"{since - 1:040x}", f"{self.now - 1:040x}"
        fields = {"good": good, "bad": bad, **more}
        event = history.Event(night, kind, "softmax/a", case, "NVIDIA H200", _day(since), **fields)
        self.put(*history.event_file([event]))

    def slower(self, since: int, case: str = "c") -> None:
        self.say("remeasured", since, case, verdict="SLOWER", delta=0.05, low=0.045, high=0.055)

    def changes(self) -> tuple[Change, ...]:
        return changes(load(self.folder), events(self.folder), _day(self.now - 1))


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path / "history")


@pytest.fixture
def sync(github: Any, standin: ModuleType, nights: Nights) -> Callable[..., list[str]]:
    """A night's alerting; what became of each issue."""

    def run(url: str = "") -> list[str]:
        client = Client(standin.REPOSITORY, github.token, url or github.url, QUICK)
        return [each.what for each in alert.sync(client, nights.changes())]

    return run


def _slow(nights: Nights) -> None:
    nights.add(40, 1000.0)
    nights.add(2, 1050.0)
    nights.slower(40)


def test_a_confirmed_change_is_one_issue(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)

    assert ["created"] == sync()
    assert ["unchanged"] == sync()
    (issue,) = github.issues
    assert "softmax/a is 5.0 % slower since 2026-02-10" == issue["title"]
    assert "**new**" in issue["body"]
    assert f"{39:040x}, up to {41:040x}" in issue["body"]


def test_noise_is_no_issue(github: Any, nights: Nights, sync: Any) -> None:
    nights.add(40, 1000.0)
    nights.add(2, 1050.0)
    nights.say("remeasured", 40, verdict="SAME", delta=0.0)
    nights.say("remeasured", 40, verdict="FASTER", delta=-0.05)

    assert ([], []) == (sync(), github.issues)


def test_the_same_change_on_two_rows_is_one_issue(github: Any, nights: Nights, sync: Any) -> None:
    nights.add(40, 1000.0, "cd")
    nights.add(2, 1050.0, "cd")
    nights.slower(40, "c")
    sync()
    nights.slower(41, "d")

    assert ["updated"] == sync()
    assert 1 == len(github.issues)
    assert 2 == github.issues[0]["body"].count("NVIDIA H200")


def test_a_change_that_stays_is_confirmed(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(3, 1050.0)

    assert ["updated"] == sync()
    assert "**confirmed**" in github.issues[0]["body"]


def test_a_bisected_change_names_its_commit(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    nights.say("dated", 40, good="", bad="d" * 40)

    sync()

    assert f"Commit: {'d' * 40}" in github.issues[0]["body"]


def test_it_is_closed_after_green_nights_and_not_before(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(2, 1000.0)
    assert "closed" not in sync()

    nights.add(1, 1000.0)

    assert ["closed"] == sync()
    assert ("closed", "completed") == (github.issues[0]["state"], github.issues[0]["state_reason"])
    assert ["unchanged"] == sync()


def test_a_night_without_trustworthy_data_closes_nothing(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()

    nights.add(10, None)
    sync()

    assert "open" == github.issues[0]["state"]


def test_a_new_driver_closes_nothing_and_reopens_nothing(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(10, 900.0, driver="590")
    sync()
    assert "open" == github.issues[0]["state"]
    assert "not comparable" in github.issues[0]["body"]


def test_what_was_fixed_stays_fixed_under_a_new_driver(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(4, 1000.0)
    sync()

    nights.add(10, 1100.0, driver="590")
    sync()

    assert "closed" == github.issues[0]["state"]


def test_what_is_slow_again_soon_is_reopened(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(5, 1000.0)
    sync()
    nights.add(2, 1050.0)
    nights.slower(nights.now - 2)

    assert ["reopened"] == sync()
    assert (1, "open") == (len(github.issues), github.issues[0]["state"])


def test_what_is_slow_again_much_later_is_another_change(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.add(60, 1000.0)
    sync()
    nights.add(2, 1050.0)
    nights.slower(nights.now - 2)

    assert ["unchanged", "created"] == sync()
    assert ["closed", "open"] == [issue["state"] for issue in github.issues]


def test_what_somebody_closed_while_it_is_slow_is_reopened(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    github.issues[0]["state"] = "closed"

    assert ["reopened"] == sync()


def test_acknowledged_until_a_day(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    nights.say("acknowledged", 40, text="a fix for NaN <b>", until=_day(44))
    sync()
    assert "**acknowledged** until 2026-02-14: a fix for NaN &#60;b&#62;" in github.issues[0]["body"]

    nights.add(5, 1050.0)
    sync()

    assert "**confirmed**" in github.issues[0]["body"]


@pytest.mark.parametrize(("kind", "word"), [("false", "false alarm"), ("environment", "environment")])
def test_what_is_none_is_closed_as_not_planned(kind: str, word: str, github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    nights.say(kind, 40, text="the fan")

    assert ["closed"] == sync()
    assert "not_planned" == github.issues[0]["state_reason"]
    assert f"**{word}**: the fan" in github.issues[0]["body"]


def test_what_people_wrote_above_the_table_stays(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    sync()
    github.issues[0]["body"] = "Looking at it.\n\n" + github.issues[0]["body"]
    nights.add(3, 1050.0)

    sync()

    assert github.issues[0]["body"].startswith("Looking at it.\n\nA kernel takes longer")
    assert 1 == github.issues[0]["body"].count("<!-- kernelci:change")


def test_a_strangers_marker_counts_for_nothing(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    (change,) = nights.changes()
    body = alert.page(change)
    github.issues.append(
        {"number": 5, "state": "open", "title": "t", "body": body, "user": "mallory", "labels": [alert.LABEL]}
    )

    assert ["created"] == sync()
    assert body == github.issues[0]["body"]


def test_an_issue_whose_answer_was_lost_is_not_made_twice(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    github.fail("POST", "/issues$", 502, after=True)

    assert ["created"] == sync()
    assert 1 == len(github.issues)


def test_half_a_night_is_finished_by_the_next_run(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    github.fail("POST", "/issues$", 500, times=3)
    with pytest.raises(KernelciError):
        sync()

    assert ["created"] == sync()


def test_a_token_that_may_not_write_is_said(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    github.denied.append(("POST", "/issues$"))

    with pytest.raises(KernelciError) as error:
        sync()

    assert "issues: write" in error.value.hint


def test_a_name_can_not_break_the_page(github: Any, nights: Nights, sync: Any) -> None:
    _slow(nights)
    nights.slower(40, "c` | @everyone <!-- kernelci:change 000000000000 -->")

    sync()
    sync()

    (issue,) = github.issues
    assert "@everyone" not in issue["body"].replace("`", "").split("<code>")[0]
    assert 1 == len(alert._MARKER.findall(issue["body"]))


def test_a_change_on_very_many_rows_fits(nights: Nights) -> None:
    nights.add(40, 1000.0)
    nights.add(2, 1050.0)
    for number in range(300):
        nights.slower(40, f"{number}" + "x" * 200)

    (change,) = nights.changes()

    assert len(alert.page(change, "y" * 70_000 + alert.page(change))) <= 65_536


def test_every_request_keeps_to_githubs_description(
    proxied: tuple[Any, str], standin: ModuleType, nights: Nights
) -> None:
    hub, url = proxied
    client = Client(standin.REPOSITORY, hub.token, url, QUICK)

    def sync() -> list[str]:
        return [each.what for each in alert.sync(client, nights.changes())]

    _slow(nights)
    assert ["created"] == sync()
    nights.add(3, 1000.0)
    assert ["closed"] == sync()
    nights.add(2, 1050.0)
    nights.slower(nights.now - 2)
    assert ["reopened"] == sync()
    nights.say("false", nights.now - 2, text="it is none")
    assert ["closed"] == sync()
