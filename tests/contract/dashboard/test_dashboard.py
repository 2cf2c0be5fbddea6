"""The dashboard of a made-up year, as somebody uses it: filter, open, read, by keyboard, on a phone, in the dark."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

ROOT = Path(__file__).resolve().parents[3]


def _open(browser: Any, url: str) -> None:
    browser.get("about:blank")
    browser.get(url)
    WebDriverWait(browser, 20).until(
        lambda found: found.execute_script("return document.documentElement.dataset.ready")
    )


def _shown(browser: Any) -> list[str]:
    script = "return [...document.querySelectorAll('#rows tbody tr:not([hidden])')].map(row => row.cells[0].innerText)"
    return [str(text) for text in browser.execute_script(script)]


def _row(browser: Any, word: str) -> str:
    """The address of the first row that stands so."""
    script = "return document.querySelector(`#rows tr[data-w='${arguments[0]}'] a`).href"
    return str(browser.execute_script(script, word))


def test_it_is_built_in_time_and_small(site: Any) -> None:
    assert site.seconds < 20
    assert (site.folder / "index.html").stat().st_size < 1_000_000
    assert 25 == len(list((site.folder / "kernel").glob("*.html")))


def test_nothing_comes_from_elsewhere(site: Any) -> None:
    pages = [site.folder / "index.html", next((site.folder / "kernel").glob("*.html"))]
    fetched = [url for page in pages for url in re.findall(r'(?:src|rel="[a-z]+" href)="([^"]+)"', page.read_text())]

    assert [] == [url for url in fetched if "//" in url]
    assert "MIT License" in (site.folder / "site" / "uPlot.LICENSE.txt").read_text()


def test_the_overview_is_interactive_in_a_second(browser: Any, site: Any) -> None:
    """By the page's processor time, which a busy machine does not stretch."""
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    try:
        browser.get("about:blank")
        before = _busy(browser)
        browser.get(f"{site.url}/index.html")
        WebDriverWait(browser, 60).until(
            lambda found: found.execute_script("return document.documentElement.dataset.ready")
        )
        took = _busy(browser) - before
    finally:
        browser.execute_cdp_cmd("Performance.disable", {})

    assert 0 < took < 1
    assert 600 == len(_shown(browser))


def _busy(browser: Any) -> float:
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))


def test_filtering_by_text_gpu_and_word(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")

    browser.find_element(By.ID, "find").send_keys("softmax triton")
    assert 24 == len(_shown(browser))
    Select(browser.find_element(By.ID, "gpu")).select_by_visible_text("NVIDIA H200")
    assert 8 == len(_shown(browser))
    assert "8 shown" == browser.find_element(By.ID, "shown").text

    browser.find_element(By.ID, "find").send_keys(" nothing")
    assert browser.find_element(By.ID, "none").is_displayed()


def test_a_filter_is_in_the_address(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html#word=slower")

    words = browser.execute_script(
        "return [...document.querySelectorAll('#rows tbody tr:not([hidden])')].map(row => row.dataset.w)"
    )

    assert {"slower"} == set(words)


def test_sorting_by_how_it_stands_brings_the_worst_first(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")

    browser.find_element(By.CSS_SELECTOR, "[data-by=word]").click()

    first = browser.find_element(By.CSS_SELECTOR, "#rows tbody tr")
    assert "slower" == first.get_attribute("data-w")
    head = browser.find_element(By.CSS_SELECTOR, "th:has([data-by=word])")
    assert "ascending" == head.get_attribute("aria-sort")


def test_opening_a_kernel_and_reading_a_change(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")
    address = _row(browser, "slower")

    _open(browser, address)

    assert address.rpartition("#")[2] == browser.find_element(By.ID, "row").get_attribute("value")
    assert browser.find_element(By.CSS_SELECTOR, "#time canvas").is_displayed()
    change = next(row for row in browser.find_elements(By.CSS_SELECTOR, "#marks tbody tr") if "▲ change" in row.text)
    night = change.text.split()[0]
    change.find_element(By.TAG_NAME, "button").click()
    said = browser.find_element(By.ID, "night").text
    assert said.startswith(night)
    assert re.search(r"(new|confirmed): \+\d\.\d%", said)


def test_the_chart_is_read_by_keyboard(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")
    _open(browser, _row(browser, "steady"))
    chart = browser.find_element(By.ID, "time")

    chart.send_keys(Keys.HOME)
    first = browser.find_element(By.ID, "night").text
    chart.send_keys(Keys.ARROW_RIGHT)
    second = browser.find_element(By.ID, "night").text
    chart.send_keys(Keys.END)

    assert first.startswith("2025-12-01: ")
    assert second.startswith("2025-12-02: ")
    assert browser.find_element(By.ID, "night").text.startswith("2026-11-30: ")


def test_a_kernel_is_found_and_opened_with_keys_alone(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")

    def press(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    def focused() -> str:
        return str(browser.execute_script("return document.activeElement.id || document.activeElement.className"))

    press(Keys.TAB)
    assert "skip" == focused()
    for _ in range(10):  # past the counts, which are links, and the button for light and dark
        press(Keys.TAB)
        if focused() == "find":
            break
    assert "find" == focused()
    press("matmul/cuda 256x")
    for _ in range(20):
        press(Keys.TAB)
        if browser.execute_script("return document.activeElement.closest('tbody') != null"):
            break
    press(Keys.ENTER)
    WebDriverWait(browser, 20).until(lambda found: "/kernel/" in found.current_url)

    assert "matmul/cuda" == browser.find_element(By.TAG_NAME, "h1").text


def test_what_happened_is_opened_with_keys_alone(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")
    _open(browser, _row(browser, "slower"))

    for _ in range(20):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.closest('#marks tbody') != null"):
            break
    said = browser.execute_script("return document.activeElement.closest('tr').innerText")
    ActionChains(browser).send_keys(Keys.ENTER).perform()

    assert "time" == browser.execute_script("return document.activeElement.id")
    assert browser.find_element(By.ID, "night").text.startswith(said.split()[0])


def test_a_count_leads_to_its_rows(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")
    link = browser.find_element(By.CSS_SELECTOR, "header p a")
    count, word = re.findall(r"(\d+) (.+)", link.text)[0]

    link.click()

    WebDriverWait(browser, 20).until(lambda found: f"{count} shown" == found.find_element(By.ID, "shown").text)
    assert word == browser.find_element(By.ID, "word").get_attribute("value")


def test_light_and_dark_are_remembered(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")
    back = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(back)

    browser.find_element(By.ID, "theme").click()
    after = browser.execute_script(back)
    _open(browser, f"{site.url}/index.html")

    assert before != after == browser.execute_script(back)
    browser.find_element(By.ID, "theme").click()


def test_a_phone_needs_no_sideways_scrolling(browser: Any, site: Any) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        _open(browser, f"{site.url}/index.html")
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(wide) <= 0
        _open(browser, _row(browser, "slower"))
        assert browser.execute_script(wide) <= 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_nights_without_times_say_so_and_show_what_there_is(browser: Any, untimed: Any) -> None:
    _open(browser, f"{untimed.url}/index.html")
    assert "No row has a time" in browser.find_element(By.ID, "untimed").text

    _open(browser, _row(browser, "no times"))

    assert "has a time" in browser.find_element(By.ID, "untimed").text
    assert "Registers of a thread" == browser.find_element(By.ID, "h-time").text
    assert browser.find_element(By.CSS_SELECTOR, "#time canvas").is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, "#error canvas").is_displayed()
    hidden = "return document.getElementById(arguments[0]).closest('section').hidden"
    assert [True] * 4 == [browser.execute_script(hidden, part) for part in ("share", "roof", "registers", "psnr")]
    assert re.search(r"^2026-01-03: no time: .*, 64 registers, 16 B stack", browser.find_element(By.ID, "night").text)
    assert "§ code: registers 48 → 64" in browser.find_element(By.ID, "marks").text
    assert "16 B" in browser.find_element(By.CSS_SELECTOR, "#nights tbody tr").text


def test_how_a_row_stands_is_told_in_words(browser: Any, site: Any) -> None:
    _open(browser, f"{site.url}/index.html")

    cells = browser.execute_script(
        "return [...document.querySelectorAll('#rows tbody tr')].map(row => [row.dataset.w, row.cells[2].innerText])"
    )

    assert [] == [cell for word, cell in cells if word not in cell]


def test_colours_are_far_enough_apart(browser: Any, site: Any) -> None:
    """Text against its background by WCAG: 4.5 to 1."""
    script = """
      const [text, back] = ['--ink --far --blue --red --green --amber', '--back'].map((names) => names.split(' ').map(
        (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
      return [text, back];
    """
    for _ in range(2):
        _open(browser, f"{site.url}/index.html")
        browser.find_element(By.ID, "theme").click()
        text, (back,) = browser.execute_script(script)
        assert [] == [colour for colour in text if _contrast(colour, back) < 4.5]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
