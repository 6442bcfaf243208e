"""The rule of tests/allowed_skips.toml, on small projects of its own."""

import pytest

SKIPS = """
import pytest

@pytest.mark.skip(reason="later")
def test_skipped(): ...

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.xfail(reason="known")
def test_expected(n): assert n == 0

def test_runs(): ...
"""


def run(pytester: pytest.Pytester, tests: str, allowed: str = "") -> pytest.RunResult:
    """Run the tests in a project whose list of allowed skips is the one given."""
    pytester.mkdir("tests").joinpath("allowed_skips.toml").write_text(allowed, encoding="utf-8")
    pytester.makepyfile(test_it=tests)
    plugins = ("tests.plugins.no_silent_skips", "no:asyncio", "no:cacheprovider", "no:hypothesispytest")
    return pytester.runpytest_inprocess(*(f"-p{plugin}" for plugin in plugins))


def allow(test: str, reason: str = "it says why") -> str:
    return f'[[allowed]]\ntest = "{test}"\nreason = "{reason}"\n'


def test_a_skip_and_an_xfail_fail_the_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, skipped=1, xfailed=2)
    result.stdout.fnmatch_lines(["FAILED: test_it.py::test_skipped did not run*later*"])
    result.stdout.fnmatch_lines(["FAILED: test_it.py::test_expected?2? did not run*known*"])


def test_a_listed_one_does_not(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS, allow("test_it.py::test_skipped") + allow("test_it.py::test_expected"))
    assert result.ret == pytest.ExitCode.OK


def test_a_parameter_is_listed_alone(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS, allow("test_it.py::test_skipped") + allow("test_it.py::test_expected[1]"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*test_expected?1? did not run*")


def test_a_skipped_module_fails_the_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, "import pytest\npytest.importorskip('no_such_module')\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_listed_test_that_passes_is_stale(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_runs(): ...", allow("test_it.py::test_runs"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED: test_it.py::test_runs passed; take it from*"])


def test_an_entry_without_a_reason_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS, allow("test_it.py::test_skipped", reason=" "))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*entry 1 has no reason*"])


def test_a_failing_run_stays_as_it_is(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS + "\ndef test_fails(): assert False\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, skipped=1, xfailed=2, failed=1)
