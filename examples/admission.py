"""Duty 1 where a library takes an update as confirmed whatever its handler does: hold it until it is admitted."""

import asyncio

from turnkeeper import Engine, Overloaded, events


async def admitted(engine: Engine, event: events.Event) -> None:
    """Post until it is taken; it is in the journal when this returns."""
    while True:
        try:
            await engine.post(event)
        except Overloaded:
            await asyncio.sleep(1)
        else:
            return
