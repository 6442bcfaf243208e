"""Replay of a journal, beside decoding its frames and calling the same steps plainly."""

from __future__ import annotations

import sys
from typing import Any

from load import make_load
from measuring import best, main, options
from plain import run_plainly, spelled_out

from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import Record, decode_frame, encode_frame
from turnkeeper.engine.recovery import record_of, replay

FRAME = 32
"""Records of one frame: what a drain under load comes to."""


def run(*, quick: bool) -> dict[str, Any]:
    load = make_load(20_000 if quick else 60_000, 2_000 if quick else 6_000)
    cell, records = Cell(), list[Record]()
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        if body.due is not None:
            cell.forget_due(body.due)
        records.append(record_of(seq, at_ms, body, cell.apply(body, at_ms, seq)))
    frames = [encode_frame(records[n : n + FRAME]) for n in range(0, len(records), FRAME)]
    calls = spelled_out(load)
    assert not replay(Cell(), frames).differs
    times = 2 if quick else 3
    us = 1e6 / len(records)
    plain = best(lambda: run_plainly(calls, {}), times)[1] * us
    decode = best(lambda: [decode_frame(frame) for frame in frames], times)[1] * us
    replayed = best(lambda: replay(Cell(), frames), times)[1] * us
    return {
        "records": len(records),
        "plain_us": plain,
        "decode_us": decode,
        "replay_us": replayed,
        "records_per_s": 1e6 / replayed,
        "ratio": (plain + decode) / replayed,
    }


if __name__ == "__main__":
    given = options(__doc__)
    sys.exit(main(run(quick=given.quick), as_json=given.json))
