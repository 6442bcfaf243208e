"""Reading samples by their written names, for the `metrics` steps of scenarios (`turnkeeper.engine.lab`)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from turnkeeper.engine.errors import DecodeError
from turnkeeper.metrics.instruments import Instruments

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record

__all__ = ["RegistryProbe"]


class RegistryProbe:
    """Counts live runs on a registry of its own, strictly: a count that no list has is an error."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.instruments = Instruments(self.registry, strict=True)

    def observe(self, record: Record, run: Run, /) -> None:
        """Take in a live run.

        Raises:
            InvariantViolated: a step counted what the catalogue does not have.

        """
        self.instruments.observe(record, run)

    def sample(self, written: str, /) -> float:
        """Return a sample by its written name, `name{label="value"}`; 0 if it is absent.

        Raises:
            DecodeError: the name cannot be read, or there is no such metric: 0 of it would say nothing.

        """
        try:
            families = list(text_string_to_metric_families(f"{written} 0\n"))
            sample = families[0].samples[0]
        except (ValueError, IndexError) as error:
            raise DecodeError(f'{written!r} is no sample; write name{{label="value"}}') from error
        value = self.registry.get_sample_value(sample.name, sample.labels)
        if value is None:
            self._check(sample.name, sample.labels)
        return 0.0 if value is None else value

    def _check(self, name: str, labels: dict[str, str]) -> None:
        """Tell a name, or the name of a label, that no sample has; a name alone is a sample that is absent."""
        known = {one.name: one.labels for family in self.registry.collect() for one in family.samples}
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise DecodeError(
                f"{name!r} is no metric; {f'did you mean {close[0]}?' if close else 'see docs/METRICS.md'}"
            )
        if labels and labels.keys() != known[name].keys():
            raise DecodeError(f"{name} has the labels {', '.join(known[name]) or 'none'}; found {', '.join(labels)}")
