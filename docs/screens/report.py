"""Generates the pictures of docs/report.md and docs/choosing-alpha.md: python docs/screens/report.py

Trains the model of make.py, writes a report of it, and opens the report in Chromium (`make chromium`, and
`pip install selenium pillow`). Times are those of the machine it runs on."""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from make import HERE, frame
from matplotlib import pyplot
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import qwyc

ALPHAS = np.geomspace(0.001, 0.05, 60)
PICTURES = {  # file: width, top and height of the part that is shown, theme
    "report.png": (1080, 0, 1500, "light"),
    "report-dark.png": (390, 0, 1380, "dark"),
}


def main() -> None:
    """Write all pictures."""
    X, label = frame("train")
    X_new, label_new = frame("test")
    model = xgboost.XGBClassifier(
        n_estimators=500, max_depth=5, learning_rate=0.05, enable_categorical=True
    )
    model.fit(X[:16000], label[:16000])
    fast = qwyc.optimize(model, X[16000:], alpha=0.005)
    choosing(fast)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        fast.report(page, X_new, label_new)
        for name, (width, top, height, theme) in PICTURES.items():
            photograph(page, HERE / name, width, top, height, theme)


def choosing(fast: qwyc.Classifier) -> None:
    """What each alpha costs, and what it may cost each class."""
    found = [(alpha, fast.at(alpha=alpha).certificate) for alpha in ALPHAS]
    share = [100 * alpha for alpha, _ in found]
    figure, (work, lost) = pyplot.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
    work.step(share, [seen.mean_models for _, seen in found], where="post", color="#1f5fa8")
    work.set(title="What it costs", ylabel=f"base models per row, of {fast.policy.n_models}")
    work.set_ylim(0, None)
    rows = found[0][1].classes
    for index, colour, words in ((1, "#b3470f", "class 1"), (0, "#1f5fa8", "class 0")):
        part = rows[index].rows / sum(loss.rows for loss in rows)
        bounds = [100 * seen.classes[index].upper_bound for _, seen in found]
        lost.step(share, bounds, where="post", color=colour, label=f"{words}, {part:.0%} of rows")
    lost.plot(share, share, color="#5f6673", linestyle="--", label="all rows: alpha")
    lost.set(title="What may be lost of a class", ylabel="lost at most, % of the class")
    lost.legend(frameon=False, loc="upper left")
    for ax in (work, lost):
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(xscale="log", xlabel="alpha, % of all rows (log scale)")
        ax.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], minor=False)
        ax.minorticks_off()
        ax.xaxis.set_major_formatter("{x:g}")
    figure.savefig(HERE / "choosing-alpha.png", dpi=110)


def photograph(page: Path, target: Path, width: int, top: int, height: int, theme: str) -> None:
    """Write a part of the page as a small PNG."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        media: dict[str, Any] = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": top + height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    finally:
        driver.quit()
    picture = Image.open(io.BytesIO(base64.b64decode(taken["data"])))
    few = picture.convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main()
