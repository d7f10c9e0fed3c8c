"""The pytest plugin: `--hakmem`, and limits of tests."""

import pytest

MARKS = (
    "limit_memory(size): with --hakmem, the test fails if it has more live at a time than before",
    "limit_leaks(size, warmups=0): with --hakmem, the test fails if more stays behind it; it is run `warmups`"
    " times before",
)
LINES = 8


def pytest_addoption(parser):
    group = parser.getgroup("hakmem")
    group.addoption("--hakmem", action="store_true", help="measure the memory of each test, and heed its limits")
    group.addoption("--hakmem-top", type=int, default=10, metavar="N", help="tests in the table at the end (10)")


def pytest_configure(config):
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    if not config.getoption("--hakmem"):
        return
    from hakmem import _measure

    try:
        _measure.ready()
    except RuntimeError as error:
        raise pytest.UsageError(f"--hakmem: {error}") from None
    config.pluginmanager.register(Plugin(config.getoption("--hakmem-top")), "hakmem-measure")


def limit_of(item, name, options=()):
    """Bytes and other arguments of the mark; None if the test does not have it."""
    from hakmem import _measure

    mark = item.get_closest_marker(name)
    if mark is None:
        return None, {}
    try:
        (text,) = mark.args
        if set(mark.kwargs) - set(options):
            raise ValueError(f"there is no {sorted(set(mark.kwargs) - set(options))}")
        return _measure.parse(text), mark.kwargs
    except ValueError as error:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.{name}: {error}") from None


class Plugin:
    def __init__(self, top):
        self.top = top
        self.results = []

    def pytest_collection_modifyitems(self, items):
        """What is wrong with a mark is told before any test runs."""
        for item in items:
            limit_of(item, "limit_memory")
            warmups = limit_of(item, "limit_leaks", ["warmups"])[1].get("warmups", 0)
            if not isinstance(warmups, int) or warmups < 0:
                raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.limit_leaks: warmups is a number")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        from hakmem import _measure

        leaks, options = limit_of(item, "limit_leaks", ["warmups"])
        item.hakmem = None
        for _ in range(options.get("warmups", 0)):
            try:
                item.runtest()
            except Exception:
                break  # the test itself tells
        measure = _measure.Measure(before=leaks is not None)
        yield
        measure.stop()
        item.hakmem = measure

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        measure = getattr(item, "hakmem", None)
        if report.when != "call" or measure is None:
            return
        item.hakmem = None
        report.hakmem = [measure.peak, measure.kept]
        if report.passed and not hasattr(report, "wasxfail"):
            why = self.exceeded(item, measure)
            if why:
                report.outcome = "failed"
                report.longrepr = "\n".join(why)

    def exceeded(self, item, measure):
        from hakmem._report import amount

        why = []
        memory, _ = limit_of(item, "limit_memory")
        leaks, _ = limit_of(item, "limit_leaks", ["warmups"])
        if memory is not None and measure.peak > memory:
            why.append(f"limit_memory: {amount(measure.peak)} at a time, {amount(memory)} are allowed")
        if leaks is not None and measure.kept > leaks:
            why.append(f"limit_leaks: {amount(measure.kept)} stay, {amount(leaks)} are allowed; what grew:")
            why += measure.changes(LINES)
        return why

    def pytest_runtest_logreport(self, report):
        found = getattr(report, "hakmem", None)
        if found:
            self.results.append((*found, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter):
        from hakmem._report import amount

        shown = sorted(self.results, key=lambda result: -result[0])[: max(0, self.top)]
        if not shown:
            return
        terminalreporter.section("hakmem")
        terminalreporter.write_line(f"{'peak':>12} {'kept':>12}  test")
        for peak, kept, test in shown:
            terminalreporter.write_line(f"{amount(peak):>12} {amount(kept):>12}  {test}")
