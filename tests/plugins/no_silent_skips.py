"""A run fails on a skipped or xfailed test that tests/allowed_skips.toml does not list with a reason.

A listed test that passed fails the run as well: its entry is stale.
"""

import tomllib
from pathlib import Path

import pytest

ALLOWED = Path("tests/allowed_skips.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Read the list of the project under test; a project without one allows nothing."""
    path = config.rootpath / ALLOWED
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    config.pluginmanager.register(SkipWatch(allowed_in(text)), "no-silent-skips")


def allowed_in(text: str) -> dict[str, str]:
    """The reason of each allowed test.

    Raises:
        pytest.UsageError: an entry without a test or without a reason.
    """
    allowed: dict[str, str] = {}
    for number, entry in enumerate(tomllib.loads(text).get("allowed", []), start=1):
        for key in ("test", "reason"):
            if not str(entry.get(key, "")).strip():
                message = f"{ALLOWED}: entry {number} has no {key}; expected test = …, reason = …"
                raise pytest.UsageError(message)
        allowed[entry["test"]] = entry["reason"]
    return allowed


class SkipWatch:
    """Notes what was skipped, and turns a green run red when something was not allowed."""

    def __init__(self, allowed: dict[str, str]) -> None:
        self.allowed = allowed
        self.unlisted: dict[str, str] = {}
        self.stale: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped(report.nodeid, str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped(report.nodeid, getattr(report, "wasxfail", "") or str(report.longrepr))
        elif report.when == "call" and report.passed and report.nodeid in self.allowed:
            self.stale.add(report.nodeid)

    def _skipped(self, nodeid: str, why: str) -> None:
        if nodeid not in self.allowed and nodeid.partition("[")[0] not in self.allowed:
            self.unlisted[nodeid] = why

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (self.unlisted or self.stale) and session.exitstatus in {
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for nodeid, why in sorted(self.unlisted.items()):
            terminalreporter.write_line(f"FAILED: {nodeid} did not run and {ALLOWED} does not list it: {why}", red=True)
        for nodeid in sorted(self.stale):
            terminalreporter.write_line(f"FAILED: {nodeid} passed; take it from {ALLOWED}", red=True)
