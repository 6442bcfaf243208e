"""`turnkeeper check-config`: would the engine take this file?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from turnkeeper.cli.screen import print_json, safe
from turnkeeper.engine.config import Config, load_config
from turnkeeper.engine.errors import ConfigError

__all__ = ["check_config"]


@click.command("check-config")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def check_config(ctx: click.Context, file: Path, as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Check the settings in FILE, a TOML file, and list those that are not the default.

    Exit code 1: it cannot be used.
    """
    config, error = None, None
    try:
        config = load_config(file)
    except ConfigError as found:
        error = str(found)
    changed = {} if config is None else _changed(config)
    if as_json:
        print_json({"file": str(file), "ok": error is None, "error": error, "changed": changed})
    elif error is None:
        click.echo(f"{safe(str(file))}: can be used; {len(changed) or 'no'} settings differ from the default")
        for key, value in changed.items():
            click.echo(safe(f"  {key} = {value!r}"))
    else:
        click.echo(f"Error: {safe(error)}", err=True)
    if error is not None:
        ctx.exit(1)


def _changed(config: Config) -> dict[str, object]:
    """List the settings that are not the default, by key path."""
    mine, default = msgspec.to_builtins(config), msgspec.to_builtins(Config())
    return {
        f"{section}.{key}": value
        for section, values in mine.items()
        for key, value in values.items()
        if value != default[section][key]
    }
