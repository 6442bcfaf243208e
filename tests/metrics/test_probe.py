"""Samples by their written names, for scenarios."""

import pytest

from tests.metrics.conftest import INCIDENT, Play
from turnkeeper.engine.errors import DecodeError


def test_a_metrics_step_reads_the_probe(play: Play) -> None:
    """The step itself compares; a mismatch would fail in `play`."""
    wanted = {
        'turnkeeper_replies_total{owner="proven-fold",interim="false"}': 1,
        'turnkeeper_replies_total{interim="false", owner="proven-fold"}': 1,
        "turnkeeper_turn_seconds_count": 1,
        'turnkeeper_turns_settled_total{outcome="no such outcome"}': 0,
    }
    play([*INCIDENT, {"metrics": wanted}])


@pytest.mark.parametrize("written", ["", "{", "turnkeeper_x{", "turnkeeper_x{a=b}", "two words"])
def test_a_name_that_cannot_be_read(written: str, play: Play) -> None:
    with pytest.raises(DecodeError, match="write name"):
        play(INCIDENT[:1])[written]
