"""The explorer: every order of a scenario's events, of what the platform tells, and of deadlines that came.

A scenario file has one order. In the world, what the platform tells of an operation comes some time later, and a
deadline that came may stand behind other events. Here each may come before or after each of the moves around it,
up to `depth` moves from where the file has it; the events of one chat keep their order, and so does time. Branches
that agree on everything are followed once, so the orders are many and the states few. Whoever is judged is judged
by what users saw (the simulator's oracle), by the invariants, and by whether everything ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.lab.exploration.branch import Branch
from turnkeeper.engine.lab.exploration.moves import Moves, moves_of
from turnkeeper.engine.lab.exploration.view import outcome_of
from turnkeeper.engine.lab.simulation.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Choice = tuple[int, Callable[[Branch, tuple[str, ...]], str]]
    """Its place among the choices of one moment, and what makes it and names it."""

    from turnkeeper.engine.config import Config
    from turnkeeper.engine.lab.exploration.branch import Answer
    from turnkeeper.engine.lab.exploration.moves import Planned
    from turnkeeper.engine.lab.scenario import Scenario

__all__ = ["Breach", "Explored", "Outcome", "explore"]

STATES_MAX = 50_000
ENDS_MS = (1000, 60_000, 700_000, 95_000_000)
"""After the last move: how long the platform and the clock go on, in spans; more than any turn lasts."""
BREACHES_MAX = 20
EARLY = 4
"""The rank of what the file has later."""


class Outcome(msgspec.Struct):
    """What was seen in some of the orders."""

    seen: dict[str, Any]
    """`channels`, `turns` and `acks`."""
    orders: int
    """How many orders lead to it."""
    example: list[str]
    """One of them."""
    own: bool = False
    """The file's own order is among them."""


class Breach(msgspec.Struct):
    """What must not be, with an order that shows it."""

    what: str
    example: list[str]
    transcript: list[str]
    """Each event, the rows that decided it, and what was commanded."""


class Explored(msgspec.Struct):
    """What an exploration found."""

    file: str
    scenario: str
    depth: int
    orders: int = 0
    """Interleavings, each counted once, over the states that were followed."""
    states: int = 0
    left_out: int = 0
    """States that were not followed, because there were too many."""
    outcomes: list[Outcome] = []
    breaches: list[Breach] = []


class Search:
    """One exploration.

    Args:
        scenario: the file, read.
        depth: how many moves something may be moved.
        states_max: states that are followed; more are left out, and told.
        progress: called with (moves made, moves in all, states so far).

    """

    def __init__(
        self, scenario: Scenario, depth: int, states_max: int, progress: Callable[[int, int, int], None] | None
    ) -> None:
        self.found = Explored(scenario.file, scenario.name, depth, outcomes=[], breaches=[])
        self._scenario = scenario
        self._depth = depth
        self._states_max = states_max
        self._progress = progress
        self._moves: Moves = moves_of(scenario)
        self._encoded: dict[int, tuple[object, bytes]] = {}
        self._outcomes: dict[bytes, Outcome] = {}
        self._told: set[str] = set()

    def run(self) -> Explored:
        """Follow every order, one choice after the other on all branches at once."""
        first = Branch(None, self._scenario.next_message)
        first.planned = self._moves.planned
        first.runtime.start(self._scenario.config, reconciles=False)
        first.rest(self._moves.chats)
        layer = {0: first}
        while layer:
            layer = self._next_layer(layer)
        self.found.outcomes = sorted(self._outcomes.values(), key=_often, reverse=True)
        return self.found

    def _next_layer(self, layer: dict[int, Branch]) -> dict[int, Branch]:
        after: dict[int, Branch] = {}
        room = max(16, self._states_max - self.found.states)
        for branch in layer.values():
            ended = True
            for child in self._children(branch):
                ended = False
                self._arrive(child, after, room)
            if ended:
                self._end(branch)
        self.found.states += len(after)
        if self._progress is not None and after:
            made = max(branch.steps for branch in after.values())
            self._progress(made, len(self._moves.moves), self.found.states)
        return after

    def _arrive(self, child: Branch, after: dict[int, Branch], room: int) -> None:
        """Let a branch go on alone, or together with one that agrees with it."""
        self._judge_runs(child)
        key = child.key(self._encoded)
        known = after.get(key)
        if known is not None:
            self._judge(child)  # from here on the other one stands for it
            known.ways += child.ways
            if child.own and not known.own:
                child.ways, after[key] = known.ways, child
        elif len(after) >= room and not child.own:
            self.found.left_out += 1
        else:
            after[key] = child

    # ------------------------------------------------------------ choices

    def _children(self, branch: Branch) -> Iterator[Branch]:
        """Yield what may come next; what comes first here is what comes next in the file."""
        moves, chats, first = self._moves, self._moves.chats, branch.own
        for rank, make in self._choices(branch):
            child = Branch(branch)
            child.own = first and rank != EARLY
            first = first and rank == EARLY
            child.label = make(child, chats)
            yield child
        if branch.until_ms is None and self._may_go_on(branch):
            for index in moves.next(branch.taken):
                child = Branch(branch)
                child.own = first
                first = False
                self._take(child, index)
                yield child

    def _choices(self, branch: Branch) -> list[Choice]:
        """List what may come next beside the next move, in the order that it has in the file."""
        found: list[Choice] = []
        if branch.due():
            found.append((0, _fire))
        found += [(1, partial(_hear, answer)) for answer in branch.answers]
        out = {getattr(answer.event, "delivery", None) for answer in branch.answers}
        for planned in branch.planned:
            key = branch.platform.named(planned.settling)
            if key is None or key in out:
                continue
            out.add(key)
            if branch.steps >= planned.place - self._depth:
                rank = 2 if branch.steps >= planned.place else EARLY
                found.append((rank, partial(_settle, planned)))
        if branch.until_ms is not None and not branch.due() and self._may_go_on(branch):
            found.append((3, _go_on))
        return sorted(found, key=_rank)

    def _may_go_on(self, branch: Branch) -> bool:
        """Say whether nothing that waits has waited as long as it may."""
        latest = branch.steps - self._depth
        if branch.due_place is not None and branch.due_place <= latest:
            return False
        if any(answer.place <= latest for answer in branch.answers):
            return False
        return not any(
            planned.place <= latest and branch.platform.named(planned.settling) is not None
            for planned in branch.planned
        )

    def _take(self, child: Branch, index: int) -> None:
        move, chats = self._moves.moves[index], self._moves.chats
        child.label = move.title
        if move.step.kind == "crash":
            child.taken, child.steps = child.taken | 1 << index, child.steps + 1
            child.directive = child.platform.step = move.directive
            child.crash(self._config_at(child), move.step.raw, chats)
            return
        while move.step.kind == "advance" and child.due():
            child.fire(chats)  # a deadline does not stay behind when time goes on
        child.take(index, move, chats)

    def _config_at(self, branch: Branch) -> Config:
        """Return the configuration that a restart reads: the file's, or the last one that was reloaded."""
        for index in range(len(self._moves.moves) - 1, -1, -1):
            config = self._moves.moves[index].step.config
            if config is not None and branch.taken >> index & 1:
                return config
        return self._scenario.config

    # ------------------------------------------------------------ judging

    def _end(self, branch: Branch) -> None:
        """Let everything end, judge the whole order, and note what was seen."""
        self.found.orders += branch.ways
        last = Branch(branch)
        for span_ms in ENDS_MS:
            last.finish(span_ms, self._moves.chats)
        self._judge_runs(last)
        self._judge(last, end=True)
        seen = outcome_of(last.view)
        key = codec.encode(seen)
        known = self._outcomes.get(key)
        if known is None:
            self._outcomes[key] = Outcome(seen, branch.ways, branch.order(), branch.own)
            return
        known.orders += branch.ways
        if branch.own:
            known.own, known.example = True, branch.order()

    def _judge_runs(self, branch: Branch) -> None:
        for what in branch.broken:
            self._breach(what, branch)

    def _judge(self, branch: Branch, *, end: bool = False) -> None:
        """Let the oracle read the log of one order."""
        complaints: list[str] = []
        oracle = Oracle(self._scenario.config, complaints)
        for at in branch.path():
            for what, of, run, now_ms in at.log:
                if what == "ran":
                    oracle.ran(of, run, now_ms)
                elif what == "performed":
                    oracle.performed(of, now_ms)
                elif what == "crashed":
                    oracle.crashed(now_ms, answers_lost=False)
                else:
                    oracle.reloaded(of, now_ms)
        if end:
            oracle.end()
        for what in complaints:
            self._breach(what, branch)

    def _breach(self, what: str, branch: Branch) -> None:
        if what in self._told or len(self.found.breaches) >= BREACHES_MAX:
            return
        self._told.add(what)
        lines = [line for at in branch.path() for moment in at.moments for line in moment.lines()]
        self.found.breaches.append(Breach(what, branch.order(), lines))


def _go_on(child: Branch, chats: tuple[str, ...]) -> str:
    child.go_on(chats)
    return f"time goes on to {child.clock.now_ms()} ms"


def _fire(child: Branch, chats: tuple[str, ...]) -> str:
    return f"{child.fire(chats)} is due"


def _hear(answer: Answer, child: Branch, chats: tuple[str, ...]) -> str:
    return child.hear(answer, chats)


def _settle(planned: Planned, child: Branch, chats: tuple[str, ...]) -> str:
    return child.settle(planned, chats)


def _rank(choice: Choice) -> int:
    return choice[0]


def _often(outcome: Outcome) -> tuple[bool, int]:
    return outcome.own, outcome.orders


def explore(
    scenario: Scenario,
    *,
    depth: int = 6,
    states_max: int = STATES_MAX,
    progress: Callable[[int, int, int], None] | None = None,
) -> Explored:
    """Explore every order of a scenario; what it expects is not compared.

    Args:
        scenario: the file, read.
        depth: by how many moves what the platform tells, or a deadline, may come earlier or later than in the file.
        states_max: how many states are followed; what is beyond is left out, and told.
        progress: called with (moves made, moves in all, states so far).

    """
    return Search(scenario, depth, states_max, progress).run()
