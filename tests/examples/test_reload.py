"""A host that reloads at SIGHUP: the signal is a real one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING

from examples.reload_on_sighup import reload_on_sighup
from tests.actors.hosts import Plain
from turnkeeper import Engine, events

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Heard(logging.Handler):
    """What the host logs, waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.records: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.put_nowait(record.getMessage())


async def test_a_signal_reloads_and_a_bad_file_keeps_the_old_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "turnkeeper.toml"
    file.write_text("[timers]\nquiet_ms = 1\n", encoding="utf-8")
    heard = Heard()
    monkeypatch.setattr(logging.getLogger("gateway"), "handlers", [heard])
    async with Engine(file, Plain()) as engine:
        reload_on_sighup(engine, file)
        try:
            file.write_text("[timers]\nquiet_ms = -1\n", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(20):
                said = await heard.records.get()
            assert said.startswith(f"not reloaded: {file}: timers.quiet_ms is -1; expected")
            assert engine.config.timers.quiet_ms == 1
            file.write_text("[timers]\nquiet_ms = 2\n", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGHUP)
            while engine.config.timers.quiet_ms != 2:
                await engine.post(events.Activity("c1", "a hook"))
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
