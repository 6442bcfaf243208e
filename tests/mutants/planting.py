"""Planting faults: a module gets another function, an owner another handler, for as long as a `with` lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

__all__ = ["handled_by", "patched", "planted_in"]

Patch = Callable[[], Iterator[None]]
Mutants = dict[str, Callable[[], AbstractContextManager[None]]]


def planted_in() -> tuple[Mutants, Callable[[str], Callable[[Patch], Patch]]]:
    """Make an empty list of planted bugs, and the decorator that enters one."""
    mutants: Mutants = {}

    def planted(name: str) -> Callable[[Patch], Patch]:
        def enter(patch: Patch) -> Patch:
            mutants[name] = contextmanager(patch)
            return patch

        return enter

    return mutants, planted


@contextmanager
def patched(owner: Any, name: str, value: object) -> Iterator[None]:
    """Give a module or class another attribute."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def handled_by(handlers: dict[type, Any], message: type, handler: Callable[[Any, Any], None]) -> Iterator[None]:
    """Let an owner handle a message otherwise."""
    before = handlers[message]
    handlers[message] = handler
    try:
        yield
    finally:
        handlers[message] = before
