"""`turnkeeper compare`: one recording under its own settings and under changed ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
import msgspec

from turnkeeper.cli.playing import RuntimeName, comments_of, maker_of, read_bytes
from turnkeeper.cli.screen import FILE, print_json, width, wrapped
from turnkeeper.cli.sides import Event, Side, print_events, print_labels, print_rule, print_summary
from turnkeeper.cli.wording import headline
from turnkeeper.engine.config import Config, load_config
from turnkeeper.engine.errors import ConfigError, DecodeError
from turnkeeper.engine.lab.account import Witness, account_of
from turnkeeper.engine.lab.lines import parsed
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import Changes, Scenario, as_recording, is_transcript, read_scenario
from turnkeeper.engine.lab.trace import moment_of

__all__ = ["compare"]


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    required=True,
    help="A setting to change, such as timers.quiet_ms=2000. VALUE is TOML; a bare word is a text. Repeatable.",
)
@click.option(
    "--runtime",
    type=click.Choice(["actors", "cell"]),
    default="actors",
    show_default=True,
    help="The whole engine with its actors, or the plain cell.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with both transcripts and summaries.")
def compare(*, file: Path, settings: tuple[str, ...], runtime: RuntimeName, as_json: bool) -> None:
    """Run FILE twice, as it says and with changed settings, and print both side by side.

    FILE is a recording or scenario (JSON Lines; `-` is standard input); what it expects is left out.
    Exit code 2: the file or a setting cannot be used.
    """
    changes = _changes(settings)
    lines = parsed(read_bytes(file), str(file))
    if is_transcript(lines):
        raise DecodeError(f"{file}:1: is a transcript scenario; expected a recording with events")
    before = as_recording(read_scenario(file, lines))
    after = as_recording(read_scenario(file, lines, changes))
    left = _played(before, runtime, f"{_written(before.config, changes)} (the file's)")
    right = _played(after, runtime, _written(after.config, changes))
    if as_json:
        print_json(_as_json(before, runtime, changes, (left, right)))
    else:
        _print(before, runtime, left, right)


# ------------------------------------------------------------ settings


def _changes(settings: tuple[str, ...]) -> Changes:
    """Read `--set` options.

    Raises:
        ConfigError: one is not of the form, or no setting that the engine takes.

    """
    changes: dict[str, dict[str, object]] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and section and name):
            raise ConfigError(f"--set {setting}: expected KEY=VALUE, such as attribution.fold_proof=off")
        changes.setdefault(section, {})[name] = _value(value.strip())
    try:
        load_config(changes)
    except ConfigError as error:
        raise ConfigError(str(error).replace("config:", "--set:", 1)) from error
    return changes


def _value(text: str) -> object:
    """Read a TOML value; what is none is a text."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # no TOML, a number too long to read, nested too deep
        return text
    return read["value"] if list(read) == ["value"] else text


def _written(config: Config, changes: Changes) -> str:
    """Write the settings in question as they are in a configuration."""
    plain = msgspec.to_builtins(config)
    return ", ".join(
        f"{section}.{name} = {plain[section][name]}" for section, names in changes.items() for name in names
    )


# ------------------------------------------------------------ the two runs


def _played(scenario: Scenario, runtime: RuntimeName, label: str) -> Side:
    witness = Witness()
    runner = ScenarioRunner(scenario, maker_of(runtime), witness)
    runner.run()
    bodies = [record.body for record, run in witness.seen if moment_of(record, run) is not None]
    events = tuple(
        Event(headline(body, moment), moment)
        for body, moment in zip(bodies, runner.moments, strict=True)
        if body.configured is None
    )
    return Side(label, events, account_of(witness, runner.platform.visible))


def _as_json(scenario: Scenario, runtime: str, changes: Changes, sides: tuple[Side, Side]) -> dict[str, object]:
    return {
        "file": scenario.file,
        "scenario": scenario.name,
        "runtime": runtime,
        "set": {f"{section}.{name}": value for section, names in changes.items() for name, value in names.items()},
        "sides": [
            {
                "label": side.label,
                "transcript": [msgspec.to_builtins(event.moment) for event in side.events],
                "summary": msgspec.to_builtins(side.account),
            }
            for side in sides
        ],
    }


def _print(scenario: Scenario, runtime: str, left: Side, right: Side) -> None:
    columns = width()
    for line in wrapped(scenario.name, columns):
        click.secho(line, bold=True)
    for line in wrapped(f"{scenario.file}, run twice through the {runtime}", columns):
        click.echo(line)
    click.echo()
    print_labels(left, right, columns)
    for line in wrapped("·  a rule that decided, and why     ▸  what the host is told to do", columns):
        click.secho(line, dim=True)
    print_events(left, right, comments_of(scenario), columns)
    click.echo()
    print_rule("What it came to", columns)
    print_labels(left, right, columns)
    print_summary(left, right, columns)
