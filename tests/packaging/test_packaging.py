"""One import name over three top-level folders: what is listed, built, installed and imported (docs/adr/0002)."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS: dict[str, str] = SETUPTOOLS["package-dir"]
"""Import name → folder, of the four top-level folders."""
LINKS = ("engine", "actors", "metrics")
"""What the development set-up lays into turnkeeper/; never a part of what is built."""

IMPORT_ALL = """
import importlib, json, pkgutil, sys
import turnkeeper
names = [m.name for m in pkgutil.walk_packages(turnkeeper.__path__, "turnkeeper.") if not m.name.endswith("__main__")]
print(json.dumps({name: importlib.import_module(name).__file__ for name in ["turnkeeper", *names]}))
"""

IMPORT_ENGINE = """
import importlib, json, pkgutil, sys
import turnkeeper.engine
names = [m.name for m in pkgutil.walk_packages(turnkeeper.engine.__path__, "turnkeeper.engine.")]
if {everything}:
    for name in names:
        importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def run(*command: str | Path, cwd: Path, stdin: str | None = None) -> str:
    """Run a command without our path in the environment; its output, or its error as the test's."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def folder_of(package: str) -> Path:
    """Where the source of an import name is."""
    top = max((name for name in FOLDERS if package == name or package.startswith(f"{name}.")), key=len)
    return Path(FOLDERS[top], *package.removeprefix(top).split(".")[1:])


def source_files() -> dict[str, Path]:
    """Path inside the wheel → source file: every module of a listed package, and the type markers."""
    files = {}
    for package in SETUPTOOLS["packages"]:
        folder = ROOT / folder_of(package)
        for file in [*folder.glob("*.py"), *folder.glob("py.typed")]:
            files[f"{package.replace('.', '/')}/{file.name}"] = file
    return files


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from it, of a copy with the development links in it."""
    copy = tmp_path_factory.mktemp("copy")
    for name in FOLDERS.values():
        junk = LINKS if name == "turnkeeper" else ()
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", *junk))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for link in LINKS:
        (copy / "turnkeeper" / link).symlink_to(f"../{link}")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", copy / "dist", cwd=copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away environment with the wheel; our dependencies lie on its path, the editable install does not."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    quiet = ("--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, *quiet, "install", "--no-index", "--no-deps", wheel, cwd=home)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return home


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host's own program, with top-level modules of our folders' names."""
    for name in LINKS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the host'\n", encoding="utf-8")
    return tmp_path


def test_the_listed_packages_are_the_folders() -> None:
    found = set()
    for name, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inside = init.parent.relative_to(ROOT / folder).parts
            if name != "turnkeeper" or inside[:1] not in {(link,) for link in LINKS}:
                found.add(".".join((name, *inside)))
    assert sorted(found) == SETUPTOOLS["packages"]


def test_every_module_is_in_a_listed_package() -> None:
    listed = {folder_of(package) for package in SETUPTOOLS["packages"]}
    for folder in FOLDERS.values():
        for file in (ROOT / folder).rglob("*.py"):
            inside = file.relative_to(ROOT)
            if not (inside.parts[0] == "turnkeeper" and inside.parts[1] in LINKS):
                assert inside.parent in listed, (
                    f"{inside} would not be in the wheel: list its package in pyproject.toml"
                )


def test_each_top_level_folder_is_typed() -> None:
    for name, folder in FOLDERS.items():
        assert (ROOT / folder / "py.typed").is_file()
        assert SETUPTOOLS["package-data"][name] == ["py.typed"]


def test_the_wheel_is_the_source_and_nothing_else(wheel: Path) -> None:
    expected = source_files()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert names == set(expected)
        for name, file in expected.items():
            assert archive.read(name) == file.read_bytes(), name


def test_the_sdist_holds_each_source_once(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    sources = sorted(name for name in names if name.endswith((".py", "py.typed")))
    assert sources == sorted(str(file.relative_to(ROOT)) for file in source_files().values())


def test_every_module_imports_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    origins = json.loads(run(installed / "bin/python", "-c", IMPORT_ALL, cwd=tmp_path))
    modules = {name.removesuffix(".py").removesuffix("/__init__") for name in source_files() if name.endswith(".py")}
    assert {name.replace(".", "/") for name in origins} == modules - {"turnkeeper/__main__"}
    for name, file in origins.items():
        assert Path(file).is_relative_to(installed), f"{name} comes from {file}"


def test_the_command_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert "Usage: turnkeeper" in run(installed / "bin/turnkeeper", "--help", cwd=tmp_path)
    assert "Usage:" in run(installed / "bin/python", "-m", "turnkeeper", "--help", cwd=tmp_path)


def test_the_program_of_the_readme_runs_as_printed(installed: Path, tmp_path: Path) -> None:
    """Copied into an empty folder, with the wheel installed and nothing of the checkout on the path."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, printed = re.findall(
        r"^```python\n(.*?)^```$.*?^```text\n(.*?)^```$",
        readme[readme.index("## Embed it") :],
        re.DOTALL | re.MULTILINE,
    )[0]
    (tmp_path / "gateway.py").write_text(code, encoding="utf-8")
    assert run(installed / "bin/python", "-W", "error", "gateway.py", cwd=tmp_path) == printed
    where = run(installed / "bin/python", "-c", "import turnkeeper.actors as a; print(a.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(installed)


def test_a_hosts_own_folders_do_not_break_us(installed: Path, host: Path) -> None:
    check = "import engine, actors, metrics; assert engine.OWNER == actors.OWNER == metrics.OWNER == 'the host'"
    origins = json.loads(run(installed / "bin/python", "-c", check + IMPORT_ALL, cwd=host))
    assert Path(origins["turnkeeper.metrics"]).is_relative_to(installed)


@pytest.mark.parametrize("everything", [False, True], ids=["the package", "each module of it"])
def test_the_engine_loads_no_actor_and_no_exporter(installed: Path, tmp_path: Path, everything: bool) -> None:
    loaded = json.loads(run(installed / "bin/python", "-c", IMPORT_ENGINE.format(everything=everything), cwd=tmp_path))
    assert "turnkeeper.engine" in loaded
    assert not {"pykka", "prometheus_client", "click", "turnkeeper.actors", "turnkeeper.metrics"} & set(loaded)


@pytest.mark.parametrize(
    ("statement", "banned"),
    [
        ("import metrics", True),
        ("import actors.system", True),
        ("from engine import ids", True),
        ("from engine.chat import step", True),
        ("import turnkeeper.metrics", False),
        ("from turnkeeper.engine import ids", False),
        ("from time import time", True),
        ("from uuid import uuid4", True),
        ("from random import shuffle", True),
    ],
)
def test_bare_names_are_banned(statement: str, banned: bool) -> None:
    ruff = Path(sys.executable).parent / "ruff"
    command = [
        str(ruff),
        "check",
        "--no-cache",
        "--select=TID251",
        "--output-format=concise",
        "--stdin-filename=x.py",
        "-",
    ]
    done = subprocess.run(
        command, cwd=ROOT, input=statement + "\n", capture_output=True, text=True, check=False, timeout=60
    )
    assert ("TID251" in done.stdout) is banned, done.stdout + done.stderr
    assert done.returncode == int(banned)


def test_the_dependencies_are_the_documented_ones() -> None:
    names = [requirement.partition(">")[0] for requirement in PROJECT["project"]["dependencies"]]
    assert names == ["click", "msgpack", "msgspec", "prometheus-client", "pykka"]
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [name for name in names if f"## {name}\n" not in reasons] == []
