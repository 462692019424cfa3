"""A headless Chromium without network: a page that needs more than its own file fails, and shows."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_PATH = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=4000",
    "--enable-logging=stderr",
)
TIMEOUT_S = 90
# [process:thread:time:INFO:CONSOLE:12] "message", source: file:///page.html (12)
CONSOLE = re.compile(r'^\[[^\]]*CONSOLE\S*\] "(.*?)", source: (\S*) \((\d+)\)$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Browser:
    executable: str

    def screenshot(self, html_path: Path, png_path: Path, width: int = 1280, height: int = 900) -> None:
        png_path.unlink(missing_ok=True)
        self._run(html_path, f"--screenshot={png_path.resolve()}", f"--window-size={width},{height}")
        assert png_path.is_file(), f"no screenshot of {html_path}"

    def dump_dom(self, html_path: Path) -> str:
        """The page as HTML, after its scripts have run."""
        return self._run(html_path, "--dump-dom")[0]

    def console_errors(self, html_path: Path) -> list[str]:
        """All that the page writes to the console, uncaught errors included: a good page writes nothing."""
        log = self._run(html_path, "--dump-dom")[1]
        return [f"{source}:{line}: {message}" for message, source, line in CONSOLE.findall(log)]

    def network_requests(self, html_path: Path) -> list[str]:
        """The addresses outside its own file that the page asks for: a self-contained page has none."""
        with tempfile.TemporaryDirectory() as folder:
            log_path = Path(folder) / "net.json"
            self._run(html_path, "--dump-dom", f"--log-net-log={log_path}")
            events = json.loads(log_path.read_text(encoding="utf-8"))["events"]
        # A page opened from a file has no origin, "null"; the browser's own traffic is "not an origin".
        asked = [e["params"] for e in events if e.get("params", {}).get("initiator") == "null"]
        return sorted({p["url"] for p in asked if p["url"].startswith(("http", "ws"))})

    def _run(self, html_path: Path, *flags: str) -> tuple[str, str]:
        """Output and log. Both go through files: a pipe held by a stray child could block for ever."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            out_path, log_path = Path(folder) / "out", Path(folder) / "log"
            profile = f"--user-data-dir={folder}/profile"
            command = [self.executable, *FLAGS, profile, *flags, html_path.resolve().as_uri()]
            with out_path.open("wb") as out, log_path.open("wb") as log:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
                )
                try:
                    code = process.wait(TIMEOUT_S)
                finally:
                    end_group(process)
            output, errors = (path.read_text("utf-8", "replace") for path in (out_path, log_path))
        assert code == 0, f"the browser failed on {html_path}:\n{errors[-2000:]}"
        return output, errors


def end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def find_browser() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, (*NAMES, MAC_PATH))), None)


@pytest.fixture(scope="session")
def browser() -> Browser:
    executable = find_browser()
    if executable is None:
        reason = "needs a browser: install Chromium, or set CHROMIUM to its path"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return Browser(executable)
