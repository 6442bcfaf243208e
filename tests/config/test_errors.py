"""Every mistake in a configuration: file, key path, what was found, what is allowed, what may have been meant."""

from pathlib import Path

import pytest

from turnkeeper.engine.config import host_port, load_config
from turnkeeper.engine.errors import ConfigError

MS = "whole milliseconds from 0 to 2_592_000_000"
HOME = 'expected server/id or server/id#thread, as "discord/42"'
ADDR = 'expected host:port with a port from 0 to 65535, as "127.0.0.1:9464" or "[::1]:9464"'

CASES = {
    # unknown names
    "[timer]": "timer is no section; did you mean timers?",
    "[tmers]\nquiet_ms = 5": "tmers is no section; did you mean timers?",
    "[qqq]": "qqq is no section; known: attribution, timers, finalize, delivery, dedup, refusal, breaker, speech, "
    "inbound, limits, recovery, transcript, journal, metrics, invariants",
    "quiet_ms = 5": "quiet_ms is no section; did you mean timers.quiet_ms?",
    "[timers]\nquit_ms = 5": "timers.quit_ms (= 5) is no setting; did you mean timers.quiet_ms?",
    "[timers]\nretries = 5": "timers.retries (= 5) is no setting; did you mean delivery.retries?",
    '[metrics]\nzzz = "x"': 'metrics.zzz (= "x") is no setting; known: metrics.addr',
    "[timers.quiet]\nms = 5": "timers.quiet (= {'ms': 5}) is no setting; did you mean timers.quiet_ms?",
    # wrong types
    "timers = 5": "timers is 5; expected a table of settings, [timers]",
    "[[timers]]": "timers is [{}]; expected a table of settings, [timers]",
    '[timers]\nquiet_ms = "18s"': f'timers.quiet_ms is "18s"; expected {MS}',
    "[timers]\nquiet_ms = 1.5": f"timers.quiet_ms is 1.5; expected {MS}",
    "[timers]\nquiet_ms = true": f"timers.quiet_ms is true; expected {MS}",
    "[timers]\nquiet_ms = [1]": f"timers.quiet_ms is [1]; expected {MS}",
    "[breaker]\nenabled = 1": "breaker.enabled is 1; expected true or false",
    '[breaker]\nenabled = "yes"': 'breaker.enabled is "yes"; expected true or false',
    "[refusal]\nmark = 5": "refusal.mark is 5; expected a text",
    "[speech]\nhome = 42": "speech.home is 42; expected a text",
    "[journal]\nkind = 1": 'journal.kind is 1; expected one of "memory", "sqlite"',
    "[delivery]\nbackoff_ms = 5": "delivery.backoff_ms is 5; expected a list of at least one item, "
    "each whole milliseconds from 0 to 86_400_000",
    "[delivery]\nbackoff_ms = []": "delivery.backoff_ms is []; expected a list of at least one item, "
    "each whole milliseconds from 0 to 86_400_000",
    '[delivery]\nbackoff_ms = [1, "x"]': 'delivery.backoff_ms[1] is "x"; expected a list of at least one item, '
    "each whole milliseconds from 0 to 86_400_000",
    # values out of bounds, words that are none
    "[timers]\nquiet_ms = -1": f"timers.quiet_ms is -1; expected {MS}",
    "[timers]\nturn_max_ms = 0": "timers.turn_max_ms is 0; expected whole milliseconds from 1 to 2_592_000_000",
    "[timers]\nquiet_ms = 99999999999": f"timers.quiet_ms is 99_999_999_999; expected {MS}",
    "[delivery]\njitter_percent = 101": "delivery.jitter_percent is 101; expected whole percent from 0 to 100",
    "[delivery]\nbackoff_ms = [0, -1]": "delivery.backoff_ms[1] is -1; expected a list of at least one item, "
    "each whole milliseconds from 0 to 86_400_000",
    "[limits]\ntext_bytes = 0": "limits.text_bytes is 0; expected whole bytes from 1 to 268_435_456",
    "[limits]\nledger = 0": "limits.ledger is 0; expected an integer from 1 to 10_000_000",
    '[attribution]\nfold_proof = "on"': 'attribution.fold_proof is "on"; expected one of "consumed", "off"',
    '[speech]\nprose = "mixed"': 'speech.prose is "mixed"; expected one of "locus", "hybrid", "explicit", "disabled"',
    # values that do not go together, or name no place
    "[limits]\ningress_low = 70000": "limits.ingress_low is 70_000; expected at most limits.ingress_high, 65_536",
    "[limits]\ningress_high = 10": "limits.ingress_low is 49_152; expected at most limits.ingress_high, 10",
    '[journal]\nkind = "sqlite"': 'journal.kind is "sqlite" and journal.path is absent; '
    "give the path of the journal's file",
    '[speech]\nhome = "general"': f'speech.home is "general"; {HOME}',
    '[speech]\nhome = "discord/"': f'speech.home is "discord/"; {HOME}',
    '[speech]\nhome = "?/42"': f'speech.home is "?/42"; {HOME}',
    '[speech]\nhome = "/42"': f'speech.home is "/42"; {HOME}',
    '[speech]\nhome = ""': f'speech.home is ""; {HOME}',
    '[metrics]\naddr = "9464"': f'metrics.addr is "9464"; {ADDR}',
    '[metrics]\naddr = ""': f'metrics.addr is ""; {ADDR}',
}


@pytest.mark.parametrize(("text", "said"), CASES.items(), ids=list(CASES))
def test_a_mistake_in_a_file(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "turnkeeper.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(caught.value) == f"{file}: {said}"


def test_a_mistake_in_a_mapping_names_no_file() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"speech": {"home": None, "prose": None}})
    assert str(caught.value) == (
        'config: speech.prose is None; expected one of "locus", "hybrid", "explicit", "disabled"'
    )


def test_a_key_that_is_no_text_is_an_unknown_one() -> None:
    with pytest.raises(ConfigError, match="config: 5 is no section; known: attribution"):
        load_config({5: {}})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"config: timers\.5 \(= 1\) is no setting; known: timers\.stop_grace_ms"):
        load_config({"timers": {5: 1}})


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"speech": {"prose": "x" * 100_000}})
    assert len(str(caught.value)) < 200
    with pytest.raises(ConfigError) as caught:
        load_config({"timers": {"quiet_ms": list(range(100_000))}})
    assert len(str(caught.value)) < 200


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "no.toml"
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(caught.value) == f"{file}: cannot be read (No such file or directory); give the path of a TOML file"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\); give the path of a TOML file"):
        load_config(tmp_path)


def test_bad_toml_names_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[timers]\nquiet_ms = \n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(caught.value).startswith(f"{file}: is no TOML (Invalid value (at line 2, column 12)")
    assert str(caught.value).endswith("; see config.example.toml")


def test_a_key_twice_is_bad_toml(tmp_path: Path) -> None:
    file = tmp_path / "twice.toml"
    file.write_text("[timers]\nquiet_ms = 1\nquiet_ms = 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no TOML"):
        load_config(file)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes(b'[refusal]\nmark = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"is no TOML .*utf-8"):
        load_config(file)


@pytest.mark.parametrize(
    ("addr", "read"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("0.0.0.0:09464", ("0.0.0.0", 9464)),  # noqa: S104 - a text that is read, nothing binds
    ],
)
def test_addresses(addr: str, read: tuple[str, int]) -> None:
    assert host_port(addr) == read


@pytest.mark.parametrize("addr", ["", ":1", "a", "a:", "a:b", "a:65536", "a:999999999999", "::1:5", "[]:5", "a:٣"])
def test_texts_that_are_no_address(addr: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        host_port(addr)
