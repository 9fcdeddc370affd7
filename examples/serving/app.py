"""A classifier behind HTTP: `QWYC_FILE=fraud.qwyc uvicorn app:app`. Needs `pip install fastapi uvicorn`.

POST /predict takes one row as a JSON object, GET /metrics is for Prometheus."""

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

import qwyc

rate = float(os.environ.get("QWYC_RATE", "0.01"))  # share of rows that is checked in full
monitor = qwyc.Monitor(qwyc.load(os.environ.get("QWYC_FILE", "model.qwyc")), rate=rate)
app = FastAPI()


@app.post("/predict")
def predict(row: dict[str, Any]) -> dict[str, Any]:
    """The class of one row: column names and values; null is a missing value."""
    try:
        return {"label": monitor.predict_one(row)}
    except qwyc.InputError as error:
        raise HTTPException(422, str(error)) from None


@app.get("/metrics", response_class=PlainTextResponse)
def metrics() -> str:
    """Rows seen, rows checked, disagreement and alarm."""
    return monitor.metrics()
