"""A disk that is full, a file that may not be written, a page that is damaged: the engine in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HOST = """
import json, os, resource, sys, threading
from turnkeeper import Engine, JournalError, NotRunning, commands, events

performed, seen = [], []

class Gateway:
    def perform(self, command):
        performed.append(command)
        if isinstance(command, commands.Send):
            return events.Settled(command.chat, command.delivery, "sent", messages=(9001,))

def say(**told):
    print(json.dumps(told), flush=True)

def config(path, **also):
    return {"journal": {"path": path, "linger_ms": 0, **also},
            "limits": {"calls_per_s": 1000000, "calls_burst": 1000000}}
path = sys.argv[1]

def become_nobody():
    # Root may write anything. Everything is imported before: nobody may not read root's interpreter.
    import turnkeeper.actors.sqlite
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that the child, which is nobody where the tests run as root, may write to."""
    for part in (tmp_path, *tmp_path.parents[:4]):
        if part.name.startswith(("pytest-", "popen-")):
            part.chmod(part.stat().st_mode | 0o011)
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o777)
    tmp_path.chmod(0o755)
    return place


def host(code: str, *args: Path | str) -> list[dict[str, Any]]:
    """Run a host, and return what it said; it must end by itself."""
    source = HOST + textwrap.dedent(code)
    command = [sys.executable, "-c", source, *map(str, args)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_on_a_full_disk_the_engine_stops_and_releases_nothing_unrecorded(folder: Path) -> None:
    (told,) = host(
        """
        engine = Engine(config(path), Gateway())
        engine.start()
        engine.post(events.TurnOpened("c1", "P", message=1, channel="tg/1")).wait(30)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        acked, error = [], None
        for n in range(10_000):
            try:
                ack = engine.call(events.Reply("c1", f"k{n}", turn_id="P", text=f"{n} " + "x" * 2000), 30)
            except (JournalError, NotRunning) as found:
                error = found
                break
            acked.append(n)
        try:
            engine.post(events.Activity("c1", "late"))
            late = None
        except NotRunning as found:
            late = type(found.__cause__ or found).__name__
        try:
            engine.stop(5)
        except JournalError:
            pass
        sends = [c.delivery for c in performed if isinstance(c, commands.Send)]
        say(acked=len(acked), sends=sends, error=type(error).__name__, text=str(error), late=late)
        """,
        folder / "journal",
    )
    assert told["error"] == "JournalError"
    assert str(folder / "journal") in told["text"]
    assert "OperationalError" in told["text"]
    assert told["late"] is not None
    assert told["acked"] > 3
    (after,) = host(
        """
        from turnkeeper.actors.history import History
        from pathlib import Path
        with History(Path(path)) as history:
            handed = [r.body.handed.delivery for r in history.records() if r.body.handed is not None]
            say(handed=handed, ok=history.verify().ok)
        with Engine(config(path), Gateway()) as engine:
            engine.post(events.Activity("c1", "again")).wait(30)
        """,
        folder / "journal",
    )
    assert after["ok"]
    assert set(told["sends"]) <= set(after["handed"])
    assert len(after["handed"]) - len(told["sends"]) <= 1


def test_a_file_that_may_not_be_written_is_told_at_the_start(folder: Path) -> None:
    code = """
        become_nobody()
        try:
            Engine(config(path), Gateway()).start()
            say(error=None)
        except JournalError as error:
            say(error=type(error).__name__, text=str(error))
        """
    assert host("become_nobody()\nwith Engine(config(path), Gateway()): pass", folder / "journal") == []
    (folder / "journal").chmod(0o400)
    (told,) = host(code, folder / "journal")
    assert told["error"] == "JournalError"
    assert str(folder / "journal") in told["text"]
    assert "Permission" in told["text"] or "readonly" in told["text"]
    (folder / "journal").chmod(0o600)
    folder.chmod(0o500)
    (told,) = host(code, folder / "other")
    folder.chmod(0o777)
    assert told["error"] == "JournalError"
    assert "cannot be opened (Permission denied)" in told["text"]


def test_a_damaged_page_is_told_and_nothing_is_guessed(folder: Path) -> None:
    """Pages of the tables, overwritten while nobody looks: the start fails, naming file and cause, every time."""
    path = folder / "journal"
    host(
        """
        with Engine(config(path), Gateway()) as engine:
            for n in range(300):
                last = engine.post(events.Activity(f"c{n % 50}", "x" * 500))
            last.wait(30)
        """,
        path,
    )
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096, 7):
        path.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        path.chmod(0o666)
        (told,) = host(
            """
            try:
                with Engine(config(path), Gateway()) as engine:
                    say(started=True, chats=len(engine.broadcast(events.Activity("", "y"))), performed=len(performed))
            except JournalError as error:
                say(started=False, text=str(error), performed=len(performed))
            """,
            path,
        )
        assert told["performed"] == 0
        if not told["started"]:
            assert str(path) in told["text"], told
        else:
            assert told["chats"] == 50, f"page {page}: chats are missing, and nobody was told"
