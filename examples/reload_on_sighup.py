"""Reload at SIGHUP: the library handles no signals, a host does. The old settings stay if the new ones cannot be used."""

import asyncio
import logging
import signal
from pathlib import Path

from turnkeeper import ConfigError, Engine


def reload_on_sighup(engine: Engine, file: Path) -> None:
    """Apply the file again at each SIGHUP of this process; to be called on the loop that runs."""

    def reload() -> None:
        try:
            engine.reload(file)  # between two events; open turns keep the policy they opened with
        except ConfigError as error:
            logging.getLogger("gateway").warning("not reloaded: %s", error)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
