"""A headless Chromium for tests: pages in both themes, at any width, with and without script, over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_LIMIT_S = 60.0
# No network, no first-run traffic; the sandbox does not start for root in a container, and the pages are our own.
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
          "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
          "--remote-debugging-pipe")


class Browser:
    """One process for all tests; its commands are those of the DevTools protocol."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        # The program talks on 3 and 4, which a shell moves into place.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", PROGRAM, *_FLAGS,
             f"--user-data-dir={self.profile.name}"], pass_fds=(commands, answers), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._buffer, self._last = b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self.profile.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command; events that come meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + _LIMIT_S
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError(f"Chromium does not answer within {_LIMIT_S:.0f} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError(f"Chromium ended with {self._process.wait()}")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, path: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True,
             printed: bool = False) -> list[str]:
        """Loads a file; what went wrong on the way: errors of the console, refused and missing files."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", media="print" if printed else "", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        url = path if isinstance(path, str) else Path(path).resolve().as_uri()
        failed = self.send("Page.navigate", url=url).get("errorText")
        if not failed:
            self.loaded()
        return ([failed] if failed else []) + list(self.complaints())

    def loaded(self) -> None:
        """Waits until the page that is coming is there."""
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def complaints(self) -> list[str]:
        """What the browser has complained of since the page was opened."""
        found = []
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(what["entry"]["text"])
            elif method == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(f"console: {what['args']}")
            elif method == "Network.loadingFailed":
                found.append(f"not loaded: {what['errorText']}")
        return found

    def requests(self) -> list[str]:
        """Every address that the page has asked for."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def run(self, expression: str) -> Any:
        """The value of an expression in the page; works where the page's own scripts are off, too."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", str(result)))
        return result["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key of the keyboard, down and up."""
        text = {"text": "\r"} if key == "Enter" else {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **(text if kind == "keyDown" else {}))

    def picture(self, path: Path, most: int = 6000) -> None:
        """The whole page as PNG, at most so many pixels high."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        data = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1})["data"]
        Path(path).write_bytes(base64.b64decode(data))
