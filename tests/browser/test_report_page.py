"""The HTML report in a browser: the slider moves every number to what the library returns for that alpha.

`make test-all` installs Chromium and its driver where it can."""

import json
import math
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from reports import COLUMNS, HOSTILE, named_classes, several_classes, two_classes

pytestmark = pytest.mark.slow

BROKEN = """
const words = document.querySelector('main').innerText;
const found = ['NaN', 'undefined', 'null', 'Infinity', '[object'].filter((word) => words.includes(word));
for (const element of document.querySelectorAll('svg *')) {
  for (const { name, value } of element.attributes) {
    if (/NaN|undefined|Infinity/.test(value)) found.push(`${element.tagName} ${name}="${value}"`);
  }
}
return found;
"""
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!colour.startsWith('rgba') || !colour.endsWith(', 0)')) return colour;
  }
};
const poor = [];
const parts = 'h1,h2,h3,p,li,dt,dd,th,td,summary,button,label,figcaption,code,text';
for (const e of document.querySelectorAll(parts)) {
  if (!e.textContent.trim() || !e.getClientRects().length || e.disabled) continue;
  const style = getComputedStyle(e);
  const a = light(e.namespaceURI.endsWith('svg') ? style.fill : style.color), b = light(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(`${e.tagName} ${e.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return poor;
"""


@contextmanager
def browser(width=1200, height=900):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    service = shutil.which("chromedriver")
    assert chromium, "these tests need Chromium: apt-get install chromium chromium-driver"
    assert service, "these tests need the driver of Chromium: apt-get install chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(service))
    try:
        yield driver
    finally:
        driver.quit()


def requests(driver):
    """Everything that was asked for, but for the file itself."""
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [
        m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in asked if not url.startswith(("file://", "data:"))]


def text(driver, identifier):
    return driver.execute_script(
        "return document.getElementById(arguments[0]).textContent", identifier
    )


def table(driver, identifier):
    return driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))",
        identifier,
    )


def press(driver, identifier, key, times=1):
    from selenium.webdriver.common.by import By

    for _ in range(times):
        driver.find_element(By.ID, identifier).send_keys(key)


def percent(share):
    return f"{100 * share:.2f}%"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    fast, X, y = two_classes()
    path = tmp_path_factory.mktemp("page") / "report.html"
    fast.report(path, X, y, progress=False)
    return fast, X, y, path


@pytest.fixture(scope="module")
def opened(made):
    with browser() as driver:
        driver.get(made[-1].as_uri())
        yield driver


def facts_of(driver):
    return driver.execute_script("return JSON.parse(document.getElementById('facts').textContent)")


def test_the_slider_moves_every_number(made, opened):
    from selenium.webdriver.common.keys import Keys

    fast, X, y, _ = made
    facts = facts_of(opened)
    full = fast.full().predict(X)
    press(opened, "alpha", Keys.HOME)
    for i, point in enumerate(facts["points"]):
        if i:
            press(opened, "alpha", Keys.ARROW_RIGHT)
        there = fast.at(alpha=point["at"])
        seen, decided = there.certificate, there.decide(X)
        differs = decided.label != full
        assert text(opened, "now") == point["name"] == str(seen.budget)
        assert text(opened, "sentence") == str(seen)
        assert text(opened, "n-models") == f"{seen.mean_models:.1f}"
        assert text(opened, "n-differ") == percent(seen.observed)
        assert text(opened, "n-accuracy") == percent(np.mean(decided.label == y))
        assert text(opened, "n-features") == f"{seen.mean_features:.1f}"
        tiles = text(opened, "tiles")
        assert f"{seen.disagreements:,} of {seen.rows:,} on rows held out" in tiles
        assert f"at most {percent(seen.upper_bound)} of new rows" in tiles
        assert f"{decided.steps.mean():.1f} on the rows given" in tiles
        assert f"{percent(differs.mean())} of the rows given" in tiles
        assert table(opened, "losses") == [
            [str(label), f"{loss.lost:,}", f"{loss.rows:,}", percent(loss.share), percent(loss.upper_bound)]
            for label, loss in zip(fast.ensemble.classes, seen.classes, strict=True)
        ]  # fmt: skip
        took = facts["policies"][point["policy"]]["microseconds"]
        assert float(text(opened, "n-time").replace(",", "")) == float(f"{took:.3g}")
        cores = facts["times"]["cores"]
        assert text(opened, "n-machines") == f"{max(1, math.ceil(1e7 * took / 1e6 / cores)):,}"
        shown = table(opened, "by-step")
        assert sum(int(row[1].replace(",", "")) for row in shown) == len(X)
        assert sum(int(row[2]) for row in shown) == differs.sum()
        exits = table(opened, "exits-table")
        assert sum(int(row[1].replace(",", "")) for row in exits) == len(X)
        reached = [float(row[-1].rstrip("%")) for row in table(opened, "first-models")]
        expected = [100 * np.mean(decided.steps > step) for step in range(len(reached))]
        assert reached == pytest.approx(expected, abs=0.051)
        assert opened.execute_script(BROKEN) == []
        assert (
            opened.execute_script("return document.querySelectorAll('#points tr.now').length") == 1
        )
    press(opened, "reset", Keys.ENTER)
    assert text(opened, "now") == "2%"


def test_it_is_used_by_keyboard_alone(opened):
    from selenium.webdriver.common.keys import Keys

    opened.refresh()
    reached = []
    for _ in range(30):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        active = opened.switch_to.active_element
        reached.append(active.get_attribute("id") or active.tag_name)
        outline = active.value_of_css_property("outline-width")
        assert outline not in ("0px", ""), reached[-1]
        if reached[-1] == "column":
            break
    assert [name for name in reached if name not in ("a", "summary", "div")] == [
        "theme", "alpha", "load", "cores", "column",
    ]  # fmt: skip
    assert reached[0] == "a"  # past what comes before the report
    before = table(opened, "by-slice")
    press(opened, "column", Keys.ARROW_DOWN)
    assert table(opened, "by-slice") != before
    value = opened.execute_script(
        "const s = document.getElementById('alpha'); return s.getAttribute('aria-valuetext')"
    )
    assert value == text(opened, "now")


def test_the_load_changes_the_machines(opened):
    from selenium.webdriver.common.by import By

    facts = facts_of(opened)
    took = facts["times"]["full"]
    for load, cores in ((5e9, 8), (1e12, 64)):
        for name, value in (("load", f"{load:.0f}"), ("cores", str(cores))):
            field = opened.find_element(By.ID, name)
            field.clear()
            field.send_keys(value)
        assert text(opened, "n-machines-full") == f"{math.ceil(load * took / 1e6 / cores):,}"
    opened.find_element(By.ID, "load").clear()
    assert text(opened, "n-machines") == "–"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_and_the_theme(opened, theme):
    from selenium.webdriver.common.keys import Keys

    other = {"light": "dark", "dark": "light"}[theme]
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    opened.execute_script("delete document.documentElement.dataset.theme")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    colour = "return getComputedStyle(document.body).backgroundColor"
    own = opened.execute_script(colour)
    assert opened.execute_script(CONTRAST) == []
    press(opened, "theme", Keys.SPACE)
    assert opened.execute_script("return document.documentElement.dataset.theme") == other
    assert opened.execute_script(colour) != own
    assert opened.execute_script(CONTRAST) == []
    press(opened, "theme", Keys.SPACE)
    assert opened.execute_script(colour) == own


def test_pictures_have_words(opened):
    pictures = opened.execute_script(
        "return [...document.querySelectorAll('.chart svg')].filter((s) => s.getClientRects().length)"
        ".map((s) => [s.getAttribute('role'), s.getAttribute('aria-label')])"
    )
    assert len(pictures) == 5
    assert all(role == "img" and len(words) > 30 for role, words in pictures)


def test_it_is_offline_and_nothing_is_wrong(opened):
    assert [e for e in opened.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
    assert requests(opened) == []


def test_nothing_of_the_data_runs(opened):
    assert COLUMNS[1] in text(opened, "first-features")
    assert (
        opened.execute_script("return document.querySelectorAll('main b, main i, img').length") == 0
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: named_classes(alpha=0.02, quit="negative"),
        lambda: named_classes(alpha=0),
        lambda: named_classes(alpha=0.02, method="joint"),
        lambda: several_classes(alpha=0.03),
    ],
    ids=["filter", "proven", "the paper's method", "several classes"],
)
@pytest.mark.parametrize("with_rows", [True, False], ids=["rows", "alone"])
def test_other_kinds_on_a_phone(make, with_rows, tmp_path):
    fast, X, y = make()
    fast.report(tmp_path / "r.html", *((X, y) if with_rows else ()), progress=False)
    with browser(width=500) as driver:
        size = {"width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get((tmp_path / "r.html").as_uri())
        points = len(facts_of(driver)["points"])
        for i in range(points):
            if points > 1:
                driver.execute_script(
                    "const s = document.getElementById('alpha'); s.value = arguments[0];"
                    "s.dispatchEvent(new Event('input'))",
                    i,
                )
            assert driver.execute_script(BROKEN) == []
        assert driver.execute_script("return document.documentElement.scrollWidth") == 375
        assert [e for e in driver.get_log("browser") if e["level"] == "SEVERE"] == []
        assert requests(driver) == []
        if HOSTILE[0] in fast.ensemble.classes:
            assert HOSTILE[0][:20] in text(driver, "losses")


def test_it_prints(opened):
    pages = opened.print_page()
    assert len(pages) > 20_000  # base64 of a PDF with pictures
    assert opened.execute_script(BROKEN) == []


def test_paper_is_light_in_the_dark_theme(opened):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page = "return getComputedStyle(document.body).backgroundColor"
    opened.execute_script("delete document.documentElement.dataset.theme")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": dark})
    assert opened.execute_script(page) != "rgb(255, 255, 255)"
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    printed = opened.execute_script(page)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert printed == "rgb(255, 255, 255)"
