"""A classifier behind HTTP: `QWYC_FILE=fraud.qwyc uvicorn app:app`. Needs `pip install fastapi uvicorn`.

POST /predict takes one row as a JSON object, GET /metrics is for Prometheus. At most QWYC_AT_ONCE rows wait
or are decided at a time; a request beyond them is answered 503 at once, and may be sent again."""

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

import qwyc

rate = float(os.environ.get("QWYC_RATE", "0.01"))  # share of rows that is checked in full
monitor = qwyc.Monitor(qwyc.load(os.environ.get("QWYC_FILE", "model.qwyc")), rate=rate)
app = FastAPI()


class Shed:
    """Refuse requests to a path while `at_once` others are in work, before anything is done for them."""

    def __init__(self, app: ASGIApp, path: str, at_once: int) -> None:
        self.app, self.path, self.at_once, self.in_work = app, path, at_once, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self.path:
            return await self.app(scope, receive, send)
        if self.in_work >= self.at_once:
            busy = JSONResponse({"detail": "busy; try again"}, 503, headers={"Retry-After": "1"})
            return await busy(scope, receive, send)
        self.in_work += 1  # the event loop has one thread, so that nothing comes in between
        try:
            await self.app(scope, receive, send)
        finally:
            self.in_work -= 1


app.add_middleware(Shed, path="/predict", at_once=int(os.environ.get("QWYC_AT_ONCE", "64")))


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
