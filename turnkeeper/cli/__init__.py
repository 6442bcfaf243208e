"""The command line: one file a command, loaded when it is asked for."""

from __future__ import annotations

import errno
from importlib import import_module

import click

from turnkeeper.engine.errors import EngineError

__all__ = ["main"]

COMMANDS = {
    "run": "run",
    "compare": "compare",
    "simulate": "simulate",
    "explore": "explore",
    "explain-rules": "explain_rules",
    "check-config": "check_config",
    "transcript": "transcript",
    "journal": "journal",
}
"""Command and its module; the module holds the command under the module's own name."""


class Refused(click.ClickException):
    """Something that the user gave cannot be used."""

    exit_code = 2


class Commands(click.Group):
    """The group of all commands; an error of the engine's tree is told in one line, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in the order of a first day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of that name."""
        name = COMMANDS.get(cmd_name)
        if name is None:
            return None
        command: click.Command = getattr(import_module(f"turnkeeper.cli.{name}"), name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise Refused(str(error)) from error
        except OSError as error:
            # Of a file that somebody named there is an error of the engine's; this one is of the output.
            if error.filename is not None or error.errno == errno.EPIPE:
                raise
            raise Refused(f"the output cannot be written ({error.strerror})") from error


HELP = """One answer per turn: run scenarios, compare policies, read the rules.

\b
turnkeeper compare examples/incident.jsonl --set attribution.fold_proof=off
turnkeeper explain-rules attribution
"""


@click.group(cls=Commands, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="turnkeeper", message="%(prog)s %(version)s")
def main() -> None:
    """Run the command line."""
