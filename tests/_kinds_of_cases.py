"""`make test` runs the first case of each kind of a table, and `make long` runs the other cases, by turns (_turns.py).

@pytest.mark.one_of_each("verb", "form")        a case for each verb, and for each form
@pytest.mark.one_of_each(by=str.title)          a case for each value of a function of the id of a case
@pytest.mark.one_of_each                        the first case

A case that `make test` leaves out anyway stands for no kind.
"""

LEFT_OUT = ("long", "gpu", "browser", "notebook")  # marks of cases that `make test` does not run


def more_of_a_kind(items):
    """Yield each case whose kinds all had a case before it."""
    kinds_of_test = {}
    for item in items:
        if (mark := item.get_closest_marker("one_of_each")) is None or any(map(item.get_closest_marker, LEFT_OUT)):
            continue
        case, by = item.callspec, mark.kwargs.get("by", lambda _: None)
        kinds = {(name, repr(case.params[name])) for name in mark.args} or {by(case.id)}
        shown = kinds_of_test.setdefault(item.nodeid.partition("[")[0], set())
        if kinds <= shown:
            yield item
        shown |= kinds
