"""`turnkeeper explain-rules`: the decision tables in the terminal, and the pages made from them."""

from __future__ import annotations

from pathlib import Path

import click

from turnkeeper.cli.screen import print_json, width, wrapped
from turnkeeper.engine.lab.phases import diagram as phases
from turnkeeper.engine.lab.rule_pages import meanings, stale, write_pages
from turnkeeper.engine.lab.rules import OWNERS, RULES, Rule, rule_named

__all__ = ["explain_rules"]

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("explain-rules")
@click.argument("table", required=False)
@click.option("--write", type=FOLDER, metavar="DIR", help="Write a page for each table, and an index.")
@click.option("--check", type=FOLDER, metavar="DIR", help="Exit 1 if DIR is not what --write would write.")
@click.option("--diagram", is_flag=True, help="Print the phases of a turn as a mermaid diagram.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@click.pass_context
def explain_rules(  # noqa: PLR0913 - an argument an option
    ctx: click.Context,
    *,
    table: str | None,
    write: Path | None,
    check: Path | None,
    diagram: bool,
    as_json: bool,
) -> None:
    """List the rules, or print one TABLE: its rows, what each decides, and why."""
    _only_one(table, write, check, diagram or None)
    if write is not None:
        _write(write, as_json=as_json)
    elif check is not None:
        _check(ctx, check, as_json=as_json)
    elif diagram:
        print_json({"diagram": phases()}) if as_json else click.echo(phases(), nl=False)
    elif table is not None:
        _print_table(rule_named(table), as_json=as_json)
    else:
        _print_list(as_json=as_json)


def _only_one(*asked: object) -> None:
    if sum(one is not None for one in asked) > 1:
        raise click.UsageError("give one of TABLE, --write, --check and --diagram")


def _write(folder: Path, *, as_json: bool) -> None:
    written = write_pages(folder)
    if as_json:
        print_json({"written": list(map(str, written))})
    else:
        click.echo(f"{folder}: {len(written)} pages written")


def _check(ctx: click.Context, folder: Path, *, as_json: bool) -> None:
    found = stale(folder)
    if as_json:
        print_json({"folder": str(folder), "stale": found})
    else:
        for line in found:
            click.echo(line, err=True)
        click.echo(f"{folder}: stale; run `make docs-rules`" if found else f"{folder}: as the tables say")
    if found:
        ctx.exit(1)


def _owner(rule: Rule) -> str:
    return next(group.owner for group in OWNERS if rule in group.rules)


def _head(rule: Rule) -> dict[str, object]:
    table = rule.table
    return {
        "table": table.name,
        "owner": _owner(rule),
        "asks": rule.asks,
        "source": table.source,
        "code": rule.code,
    }


def _table_json(rule: Rule) -> dict[str, object]:
    table = rule.table
    meaning = meanings(table.facts)
    columns = {name: {"values": values, "meaning": meaning.get(name, "")} for name, values in table.values().items()}
    _, *rows = table.grid()
    return {
        **_head(rule),
        "columns": columns,
        "rows": [
            {"row": name, "when": dict(zip(table.columns, when, strict=True)), "verdict": verdict, "why": why}
            for name, *when, verdict, why in rows
        ],
    }


def _print_list(*, as_json: bool) -> None:
    if as_json:
        for rule in RULES:
            print_json({**_head(rule), "rows": len(rule.table.rows)})
        return
    for group in OWNERS:
        click.secho(group.owner, bold=True)
        for line in wrapped(group.about, width(), "  "):
            click.secho(line, dim=True)
        for rule in group.rules:
            click.echo(f"  {rule.table.name:<24} {rule.asks}")
        click.echo()
    click.echo("`turnkeeper explain-rules TABLE` prints one of them; docs/rules/ has them all, with an index of rows.")


def _print_table(rule: Rule, *, as_json: bool) -> None:
    table = rule.table
    if as_json:
        print_json(_table_json(rule))
        return
    columns = width()
    click.secho(f"{table.name}: {rule.asks}", bold=True)
    click.echo(f"Decided by the {_owner(rule)}. Written down in {table.source}; changed in {rule.code}.")
    click.echo("The first row that matches decides.\n")
    _, *rows = table.grid()
    for name, *when, verdict, why in rows:
        facts = [f"{column} = {value}" for column, value in zip(table.columns, when, strict=True) if value != "any"]
        click.secho(f"  {name}", bold=True)
        for line in wrapped(" · ".join(facts) or "whatever the facts are", columns, "    if ", "       "):
            click.echo(line)
        for line in wrapped(f"{verdict} ({why})", columns, "    →  ", "       "):
            click.echo(line)
    meaning = {name: text for name, text in meanings(table.facts).items() if text and name in table.columns}
    if meaning:
        click.echo("\nThe facts:")
        for name, text in meaning.items():
            for line in wrapped(f"{name}: {text}", columns, "  ", "    "):
                click.echo(line)
