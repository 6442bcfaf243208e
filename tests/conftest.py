"""What every test has: no silent skips, and a pytest inside pytest for the test of that rule."""

pytest_plugins = ["pytester", "tests.plugins.no_silent_skips"]
