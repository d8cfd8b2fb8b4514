"""A real chromium, headless, driven over its DevTools pipe: no driver, no websocket, nothing beyond the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
MISSING = "no chromium on this machine, so the page is not tested in a browser: apt-get install chromium"


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. What the console or an exception says is kept in `complaints`."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        found = find_chromium()
        assert found, MISSING
        ours, theirs = os.pipe(), os.pipe()
        command = [found, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
        command += ["--no-first-run", "--disable-background-networking", "--force-color-profile=srgb"]
        command += [f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]

        def wire() -> None:
            inlet, outlet = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(inlet, 3)
            os.dup2(outlet, 4)

        self._process = subprocess.Popen(
            command, preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = ours[1], theirs[0]
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._events: list[str] = []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"chromium said nothing for {PATIENCE_S:g} s"
            got = os.read(self._from, 1 << 20)
            assert got, "chromium ended"
            self._buffer += got
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file from disk and wait until it is there."""
        for url in ("about:blank", page.as_uri() + fragment):
            self._events.clear()
            self.call("Page.navigate", url=url)
            while "Page.loadEventFired" not in self._events:
                self._note(self._read())

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """Ask until the answer is true."""
        return self._until(lambda: self.run(script), script)

    def _until(self, ask: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not (found := ask()):
            assert time.monotonic() < end, f"not true after {PATIENCE_S:g} s: {what}"
            time.sleep(0.05)
        return found

    def press(self, key: str, shift: bool = False) -> None:
        """A key goes down and up where the focus is."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0, **text)

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, on: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, file: Path, selector: str | None = None, whole: bool = False) -> Path:
        """A PNG of the window, of one element, or of the whole page."""
        params: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if selector is not None:
            box = self.run(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()"
            )
            params |= {"clip": dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}}
            params["captureBeyondViewport"] = True
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **params)["data"]))
        return file

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=False)["data"])

    def close(self) -> None:
        os.close(self._to)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._from)
