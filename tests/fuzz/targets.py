"""What is fuzzed: each decoder as a function of bytes. It returns, or raises something of ours that says where.

The hypothesis tests here and the atheris harnesses in `fuzz/` call the same functions. A target judges more than
"it did not crash": what it could read must survive being written and read again, and an error must be an
`EngineError` that names its source.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.actors.sqlite_file import JournalFile
from turnkeeper.engine import codec
from turnkeeper.engine.commands import Command
from turnkeeper.engine.config import Config, Policy, load_config
from turnkeeper.engine.errors import ConfigError, DecodeError, EngineError, JournalError
from turnkeeper.engine.events import Event
from turnkeeper.engine.journal import Record, decode_frame
from turnkeeper.engine.lab.lines import parsed
from turnkeeper.engine.lab.scenario import is_transcript, read_scenario
from turnkeeper.engine.lab.transcripts import read_lines, run_transcript
from turnkeeper.engine.picture import ChatPicture
from turnkeeper.engine.transcript.openclaw import (
    Damaged,
    is_trajectory,
    pack_session,
    read_prompts,
    read_session,
    unpack_session,
    write_session,
)

__all__ = ["TARGETS", "Target"]

Target = Callable[[bytes], None]
NAME = "fuzzed.input"


def wire(data: bytes) -> None:
    """Msgpack as records, events, commands, pictures and policies, and the frame around records."""
    for kind in (Event, Command, list[Record], ChatPicture, Policy):
        try:
            found = codec.decode(data, kind)  # type: ignore[arg-type]  # a union is no class
        except DecodeError as error:
            _says_something(error)
        else:
            again = codec.decode(codec.encode(found), kind)  # type: ignore[arg-type]
            assert codec.encode(again) == codec.encode(found)
    try:
        decode_frame(data)
        codec.end_of(data)
    except EngineError as error:
        _says_something(error)


def journal(data: bytes) -> None:
    """A journal's file: whatever stands in it, it is read, cut at its last whole frame, or refused with its path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chat.journal")
        path.write_bytes(data)
        opened: SqliteJournal | None = None
        try:
            file = JournalFile(path)
            try:
                for frame in file.frames(0):
                    _framed(frame)
            finally:
                file.release()
        except JournalError as error:
            _names(error, str(path))
        try:
            opened = SqliteJournal(path)
            snapshot = opened.snapshot()
            for chat, picture in () if snapshot is None else snapshot.pictures:
                _decoded(picture, chat)
            for frame in opened.load():
                _framed(frame)
        except JournalError as error:
            _names(error, str(path))
        finally:
            if opened is not None:
                opened.close()


def _decoded(picture: bytes, chat: str) -> None:
    try:
        codec.decode(picture, ChatPicture)
    except DecodeError as error:
        _says_something(error)
    assert isinstance(chat, str)


def _framed(frame: bytes) -> None:
    try:
        decode_frame(frame)
    except EngineError as error:
        _says_something(error)


def config(data: bytes) -> None:
    """A TOML configuration, from a file and as a mapping."""
    handle, name = tempfile.mkstemp(suffix=".toml")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        try:
            assert isinstance(load_config(name), Config)
        except ConfigError as error:
            _names(error, f"{name}: ")
        try:
            raw = tomllib.loads(data.decode())
        except (ValueError, RecursionError):
            return
        try:
            load_config(raw)
        except ConfigError as error:
            _names(error, "config: ")
    finally:
        Path(name).unlink()


def scenario(data: bytes) -> None:
    """A scenario file, or a transcript scenario: read and checked, not run."""
    try:
        lines = parsed(data, NAME)
        if is_transcript(lines):
            read_lines(data.splitlines())
        else:
            read_scenario(NAME, lines)
    except DecodeError as error:
        _names(error, f"{NAME}:", "line ")


def transcript(data: bytes) -> None:
    """A transcript scenario, run."""
    try:
        run_transcript(read_lines(data.splitlines()))
    except DecodeError as error:
        _says_something(error)


def openclaw(data: bytes) -> None:
    """A session file or a trajectory of OpenClaw, and a packed session."""
    lines = data.split(b"\n")
    read = read_session(lines)
    for one in read.damaged:
        assert 0 <= one.line <= len(lines)
        assert one.why
    written = list(write_session(read.store))
    again = read_session(written)
    assert list(write_session(again.store)) == written
    assert list(write_session(unpack_session(pack_session(read.store)))) == written
    is_trajectory(lines[0])
    damaged: list[Damaged] = []
    for prompt in read_prompts(lines, damaged):
        assert 1 <= prompt.line <= len(lines)
    try:
        unpack_session(data)
    except EngineError as error:
        _says_something(error)


def _names(error: EngineError, *places: str) -> None:
    """Insist that an error begins with the place that it is about."""
    assert str(error).startswith(places), error


def _says_something(error: EngineError) -> None:
    assert len(str(error)) > len("no"), repr(error)


TARGETS: dict[str, Target] = {
    "wire": wire,
    "journal": journal,
    "config": config,
    "scenario": scenario,
    "transcript": transcript,
    "openclaw": openclaw,
}
"""By name: that of the harness `fuzz/run.py NAME`, and the first word of a kept input."""
