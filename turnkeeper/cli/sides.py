"""Two runs beside one another: two columns on a wide terminal, one below the other on a narrow one."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from unicodedata import east_asian_width

import click
import msgspec

from turnkeeper.cli.screen import quoted, wrapped
from turnkeeper.engine.lab.account import Account, Ruling
from turnkeeper.engine.lab.trace import Moment

__all__ = ["Event", "Side", "print_events", "print_labels", "print_rule", "print_summary", "together"]

BESIDE_MIN = 76
"""Fewer columns do not hold two transcripts."""
BAR = " │ "
MARGIN = 11
"""Columns of the time before an event."""


class Event(msgspec.Struct, frozen=True):
    """Something that came in, and what it led to."""

    headline: str
    moment: Moment

    @property
    def key(self) -> tuple[int, str]:
        """What makes it the same event on both sides."""
        return self.moment.at_ms, self.moment.title

    def outcome(self) -> list[tuple[str, str]]:
        """List what was decided and done: a mark, and the words."""
        rows = [("·", f"{table}: {row} ({why})") for table, row, why in self.moment.rows]
        error = [("!", f"set aside: {self.moment.error}")] if self.moment.error else []
        return [*rows, *(("▸", command) for command in self.moment.commands), *error]


class Side(msgspec.Struct, frozen=True):
    """One of the two runs."""

    label: str
    events: tuple[Event, ...]
    account: Account


def together(left: Side, right: Side) -> Iterator[tuple[Event | None, Event | None]]:
    """Pair the events of both sides; one that came on one side alone has nobody beside it."""
    one, other = [event.key for event in left.events], [event.key for event in right.events]
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from zip(left.events[a:b], right.events[c:d], strict=True)
        else:
            yield from ((event, None) for event in left.events[a:b])
            yield from ((None, event) for event in right.events[c:d])


# ------------------------------------------------------------ columns


def _cells(text: str) -> int:
    return len(text) + sum(east_asian_width(c) in "WF" for c in text)


def _halves(columns: int) -> int:
    return (columns - len(BAR)) // 2


def _print_beside(left: list[str], right: list[str], half: int, *, same: bool) -> None:
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else ""
        other = right[number] if number < len(right) else ""
        bar = BAR if other else BAR.rstrip()
        line = one + " " * (half - _cells(one))
        click.echo(click.style(line, dim=same) + click.style(bar, dim=True) + click.style(other, dim=same))


def _print_both(left: list[tuple[str, str]], right: list[tuple[str, str]], columns: int) -> None:
    """Print marked words of both sides: beside one another, or below with the side's letter."""
    same = left == right
    if columns >= BESIDE_MIN:
        half = _halves(columns)
        _print_beside(_marked(left, half), _marked(right, half), half, same=same)
        return
    for letter, words in (("A and B", left),) if same else (("A", left), ("B", right)):
        if words:
            click.secho(f"  {letter}:", bold=not same, dim=same)
            for line in _marked(words, columns - 4):
                click.secho(f"    {line}", dim=same)


def _marked(words: list[tuple[str, str]], columns: int) -> list[str]:
    return [line for mark, text in words for line in wrapped(text, columns, f"{mark} ", "  ")]


def print_rule(title: str, columns: int) -> None:
    """Begin a part of the output."""
    click.secho(f"── {title} ".ljust(columns, "─"), bold=True)


def print_labels(left: Side, right: Side, columns: int) -> None:
    """Say which settings the two sides have."""
    labels = [[("A", left.label)], [("B", right.label)]]
    if columns >= BESIDE_MIN:
        half = _halves(columns)
        _print_beside(_marked(labels[0], half), _marked(labels[1], half), half, same=False)
        click.secho("─" * (half + 1) + "┼" + "─" * (half + 1), dim=True)
        return
    for words in labels:
        for line in _marked(words, columns):
            click.echo(line)


# ------------------------------------------------------------ the transcripts


def print_events(left: Side, right: Side, comments: tuple[tuple[int, str], ...], columns: int) -> None:
    """Print both transcripts, event by event, with the file's comments between."""
    waiting = list(comments)
    for one, other in together(left, right):
        event = one or other
        if event is None:
            continue
        while waiting and waiting[0][0] <= event.moment.line:
            _print_comment(waiting.pop(0)[1], columns)
        _print_headline(event, "" if one and other else "A" if one else "B", columns)
        _print_both(one.outcome() if one else [], other.outcome() if other else [], columns)
    for _, text in waiting:
        _print_comment(text, columns)


def _print_comment(text: str, columns: int) -> None:
    click.echo()
    for line in wrapped(text, columns):
        click.secho(line, fg="cyan")


def _print_headline(event: Event, alone: str, columns: int) -> None:
    at = f"{event.moment.at_ms / 1000:>7.1f} s  "
    only = f"[{alone} only] " if alone else ""
    for line in wrapped(only + event.headline, columns, at, " " * MARGIN):
        click.secho(line, bold=True)


# ------------------------------------------------------------ the summary


def print_summary(left: Side, right: Side, columns: int) -> None:
    """Print what both runs came to, point by point, and what it means in a sentence."""
    for title, one, other in _points(left.account, right.account):
        click.secho(title, bold=True)
        _print_both([("•", line) for line in one], [("•", line) for line in other], columns)
    click.echo()
    for line in wrapped(_verdict(left, right), columns):
        click.secho(line, bold=True)


def _points(left: Account, right: Account) -> Iterator[tuple[str, list[str], list[str]]]:
    yield "What the users saw", _seen(left), _seen(right)
    yield "Whose reply it was", _owners(left), _owners(right)
    yield "Held back", _held_back(left), _held_back(right)
    yield "Sent at the end of a turn", _rescued(left), _rescued(right)
    yield "How each turn ended", _ended(left), _ended(right)


def _by(ruling: Ruling | None) -> str:
    return f"; decided by {ruling.table}: {ruling.row} ({ruling.why})" if ruling else ""


def _seen(account: Account) -> list[str]:
    lines = []
    for answer in account.answers:
        said = quoted(answer.text) if answer.text else ", ".join(answer.files)
        quote = "quoting nothing" if answer.quote is None else f"quoting {answer.quote}"
        notes = [quote, *(["in place of the preview"] if answer.instead_of_preview else [])]
        notes += [] if answer.sure else ["perhaps: nobody knows whether it arrived"]
        lines.append(f"{said}, {', '.join(notes)}")
    return lines or ["no answer"]


def _owners(account: Account) -> list[str]:
    return [
        f"reply {one.call_id} is {one.owner}{_by(one.decided)}" + (f"; error: {one.error}" if one.error else "")
        for one in account.owned
    ] or ["there was no reply"]


def _held_back(account: Account) -> list[str]:
    return [
        f"{quoted(one.text)}, said at the end of turn {one.turn_id}{_by(one.decided)}" for one in account.held_back
    ] or ["nothing"]


def _rescued(account: Account) -> list[str]:
    return [
        f"{quoted(one.text)}, as {one.purpose} of turn {one.turn_id}{_by(one.decided)}" for one in account.rescued
    ] or ["nothing"]


def _ended(account: Account) -> list[str]:
    return [
        f"turn {one.turn_id}: {one.outcome}, {_count(one.replies, 'recorded reply', 'recorded replies')}, "
        f"delivered {one.delivered}{_by(one.decided)}"
        for one in account.ended
    ] or ["no turn ended"]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number or 'no'} {one if number == 1 else many or one + 's'}"


def _verdict(left: Side, right: Side) -> str:
    if left.account == right.account:
        return "Both come to the same."
    return f"A: {_in_short(left.account)}. B: {_in_short(right.account)}."


def _in_short(account: Account) -> str:
    quotes = [str(answer.quote) for answer in account.answers if answer.quote is not None]
    said = _count(len(account.answers), "answer")
    return f"{said}, quoting {', then '.join(quotes)}" if quotes else said
