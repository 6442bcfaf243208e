"""Reading a configuration, what is said of one that cannot be used, and the example file."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

import msgspec

from turnkeeper.engine.config.sections import Config, Section
from turnkeeper.engine.errors import ConfigError
from turnkeeper.engine.ids import ChannelRef

__all__ = ["allowed", "example_toml", "host_port", "load_config"]

PORT_MAX = 65_535
COMMENT_MAX, VALUE_MAX, FILE_MAX = 110, 80, 1 << 20
"""Longest comment line of the example, and longest value in an error, in characters."""
UNITS = {"ms": "whole milliseconds", "percent": "whole percent", "bytes": "whole bytes", "days": "whole days"}
"""Of a setting, by the last word of its name."""


def load_config(source: Config | Mapping[str, object] | str | Path) -> Config:
    """Read a configuration: a `Config`, a mapping in the file's shape, or the path of a TOML file.

    Raises:
        ConfigError: what cannot be read or used, where, what is allowed and, for a key, the nearest known name.

    """
    if isinstance(source, Config):
        _read(msgspec.to_builtins(source), "config")  # what Python made was not checked when it was made
        return source
    if isinstance(source, Mapping):
        return _read(source, "config")
    try:
        with Path(source).open(encoding="utf-8") as file:
            text = file.read(FILE_MAX + 1)
        if len(text) > FILE_MAX:
            raise ConfigError(f"{source}: is longer than {FILE_MAX:_} characters; give the path of a TOML file")
        raw = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read ({error.strerror}); give the path of a TOML file") from error
    except (ValueError, RecursionError) as error:  # bad TOML, no UTF-8, a number too long to read, nested too deep
        raise ConfigError(f"{source}: is no TOML ({error}); see config.example.toml") from error
    return _read(raw, str(source))


def _read(raw: Mapping[str, object], where: str) -> Config:
    kinds: dict[str, type[Section]] = {f.name: f.type for f in msgspec.structs.fields(Config)}
    sections: dict[str, Section] = {}
    for name, values in raw.items():
        if name not in kinds:
            raise ConfigError(f"{where}: {name} is no section; {_nearest(name, '', kinds)}")
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}: {name} is {_shown(values)}; expected a table of settings, [{name}]")
        sections[name] = _section(kinds[name], values, where, name)
    config = Config(**sections)  # type: ignore[arg-type]  # each value was converted to its section's type
    for fault in _faults(config):
        raise ConfigError(f"{where}: {fault}")
    return config


def _section(kind: type[Section], values: Mapping[str, object], where: str, section: str) -> Section:
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    read: dict[str, object] = {}
    for key, value in values.items():
        name = f"{section}.{key}"
        if key not in fields:
            raise ConfigError(f"{where}: {name} (= {_shown(value)}) is no setting; {_nearest(key, section, fields)}")
        try:
            read[key] = msgspec.convert(value, type=fields[key].type)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: half a surrogate pair
            item = str(error).partition("at `$[")[2].partition("]")[0]
            if item and isinstance(value, list | tuple):
                name, value = f"{name}[{item}]", value[int(item)]  # noqa: PLW2901 - the item is at fault
            expected = allowed(fields[key].type, key)
            raise ConfigError(f"{where}: {name} is {_shown(value)}; expected {expected}") from error
    return kind(**read)


def _faults(config: Config) -> Iterator[str]:
    """Yield what is wrong with values that are each allowed, but not these, or not together."""
    low, high = config.limits.ingress_low, config.limits.ingress_high
    if low > high:
        yield f"limits.ingress_low is {low:_}; expected at most limits.ingress_high, {high:_}"
    if config.journal.kind == "sqlite" and not config.journal.path:
        yield 'journal.kind is "sqlite" and journal.path is absent; give the path of the journal\'s file'
    try:
        known = config.speech.home is None or ChannelRef.parse(config.speech.home).server
    except ValueError:
        known = None
    if not known:
        yield f'speech.home is {_shown(config.speech.home)}; expected server/id or server/id#thread, as "discord/42"'
    try:
        host_port("localhost:0" if config.metrics.addr is None else config.metrics.addr)
    except ValueError as error:
        yield f"metrics.addr is {_shown(config.metrics.addr)}; {error}"


def host_port(addr: str) -> tuple[str, int]:
    """Read `host:port`; an IPv6 host stands in brackets, which are not part of it.

    Raises:
        ValueError: there is no host, or no such port; the message shows the form.

    """
    host, _, port = addr.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    plain = host[1:-1] if bracketed else host
    is_port = port.isascii() and port.isdigit() and int(port[:6]) <= PORT_MAX
    if not is_port or not plain or (":" in plain and not bracketed):
        raise ValueError('expected host:port with a port from 0 to 65535, as "127.0.0.1:9464" or "[::1]:9464"')
    return plain, int(port)


def _nearest(name: str, section: str, known: Collection[str]) -> str:
    """Say what may have been meant: the same key of another section, else the most similar name, else all."""
    path = f"{section}." if section else ""
    same = [f"{other.name}.{name}" for other in msgspec.structs.fields(Config) if name in other.type.__struct_fields__]
    close = same or [path + one for one in difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)]
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(path + one for one in known)}"


def allowed(kind: object, name: str) -> str:
    """Say in words what a setting may be, from its type and the unit in its name."""
    base, meta = (get_args(kind)[0], get_args(kind)[1]) if get_origin(kind) is Annotated else (kind, None)
    if base is bool:
        return "true or false"
    if base is int and meta is not None:
        return f"{UNITS.get(name.rpartition('_')[2], 'an integer')} from {meta.ge:_} to {meta.le:_}"
    if get_origin(base) is tuple:
        return f"a list of at least one item, each {allowed(get_args(base)[0], name)}"
    literals = [value for part in (base, *get_args(base)) if get_origin(part) is Literal for value in get_args(part)]
    return "one of " + ", ".join(f'"{value}"' for value in literals) if literals else "a text"


def example_toml() -> str:
    """Write every setting with its default, unit and meaning: the text of `config.example.toml`."""
    lines = [
        "# Every setting of turnkeeper with its default; a file holds only what it changes.",
        "# Times end in _ms and are milliseconds. An unknown section or key is an error, never ignored.",
        "# A setting that is commented out is absent by default; what stands there is an example.",
    ]
    for section in msgspec.structs.fields(Config):
        lines += ["", "", f"# {section.type.__doc__}", f"[{section.name}]"]
        for setting in msgspec.structs.fields(section.type):
            meta, absent = get_args(setting.type)[-1], setting.default is None
            about = f"# {meta.description[:1].upper()}{meta.description[1:]}:"
            may_be = f"{allowed(setting.type, setting.name)}."
            lines += ["", f"{about} {may_be}"] if len(about + may_be) < COMMENT_MAX else ["", about, f"# {may_be}"]
            value = _shown(meta.examples[0] if absent else setting.default)
            lines.append(f"{'# ' if absent else ''}{setting.name} = {value}")
    return "\n".join([*lines, ""])


def _shown(value: object) -> str:
    """Write a value as TOML does, cut where it is long."""
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(map(_shown, value[:VALUE_MAX])) + "]"
    elif isinstance(value, bool | str):
        text = json.dumps(value if isinstance(value, bool) else value[:VALUE_MAX], ensure_ascii=False)
    else:
        text = f"{value:_}" if isinstance(value, int) else repr(value)
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
