"""Every value of the papers' tables that data here can be compared with, beside ours, in docs/papers_values.md.

    python benchmarks/paper_values.py

Nothing is measured: values are of `papers/tables.toml` and of the records in `results/`. A verdict is by a rule:

    accuracy   agrees within twice the binomial error of the two accuracies on 10 000 test images
    change     the same: federated accuracy minus that of one party
    score      membership scores agree within a factor of two
    ROC, PRC   the paper's value is within two standard deviations of ours over runs; within .02 of a single run
    marginals  the same; by single runs whose fit learns no dependence of columns, "not converged"
    settings   reproduced if `pytest tests/benchmarks/test_published.py` builds them
"""

import json
import math
import re
from pathlib import Path

from _papers import published
from _record import result_of

PAGE = Path(__file__).parents[1] / "docs" / "papers_values.md"
MARKS = re.compile(r"(<!-- paper_values -->\n).*?(<!-- end -->)", re.DOTALL)
TABLES = published("tables")
NONE = "–"
TESTED = "2026-11-27"  # day on which the tests of settings ran
SETTINGS_6 = "rate, order, columns, order of the sum, γ"


def rows_of(name):
    return json.loads(result_of(name).read_text())["rows"]


def day_of(row, name):
    """Return the day on which a row was measured."""
    return row.get("measured", json.loads(result_of(name).read_text())["date"]).split(" on ")[-1]


def is_near(ours, paper, change=0.0):
    """Return whether two accuracies, or changes of accuracies near `change`, differ by their binomial error at most."""
    level = change or paper
    return abs(ours - paper) <= 2 * math.sqrt(2 * level * (1 - level) / 10_000)


def verdict(agrees):
    return "agrees" if agrees else "contradicts"


def table_5():
    """KAHM's Table 5, L = 1."""
    name, kept = "kahm_table5", {}
    for row in rows_of(name):
        if row["L"] == 1:
            kept[row["form"].partition(",")[0], row["ε"], row["n"]] = row
    for epsilon, n, *values in dict.fromkeys(tuple(row) for row in TABLES["kahm"]["table_5"]["rows"]):
        for form, accuracy, score in (("Def. 15", values[0], values[2]), ("Def. 12", values[1], values[3])):
            ours = kept[form, epsilon, n]
            like = score > 0 and 0.5 <= ours["score"] / score <= 2
            yield (
                f"KAHM 5, {form}, ε {epsilon:g}, n {n}",
                f"{accuracy:.4f}; {score:.5f}",
                f"{ours['accuracy']:.4f}; {ours['score']:.4f}",
                f"accuracy {verdict(is_near(ours['accuracy'], accuracy))}, score {verdict(like)}",
                day_of(ours, name),
            )


def tables_8_to_10():
    """KAHM's federated tables: accuracy and its change."""
    name, part = "kahm_federated", {"one class": "table_8", "half of a class": "table_9", "at random": "table_10"}
    for row in rows_of(name):
        table = part.get(row["a party's part"])
        if table is None or not row["against one party, paper"]:
            continue
        key = row["parties"] if table == "table_10" else row["ε"]
        (_, spread, _, change) = next(one for one in TABLES["kahm"][table]["rows"] if one[0] == key)
        ours = float(row["against one party"])
        yield (
            f"KAHM {table.removeprefix('table_')}, {row['parties']} parties, ε {row['ε']:g}",
            f"{spread:.4f}; {change:+.4f}",
            f"{row['accuracy']:.4f}; {ours:+.4f}",
            f"accuracy {verdict(is_near(row['accuracy'], spread))}, change "
            f"{verdict(is_near(ours, change, row['accuracy']))}",
            day_of(row, name),
        )


def spoken(text):
    """Return the value and the standard deviation of a cell of a record; 0.02/2 for a single run."""
    value, _, deviation = text.partition(" ± ")
    return float(value), float(deviation or 0.01)


def of_classifiers(table, name, kept):
    """DP-HP's Tables 2 and 7: ROC and PRC, or F1; `kept` are the rows by data set and method."""
    columns = TABLES["dp_hp"]["table_2"]["columns"] if table == "table_2" else ["DP-MERF", "DP-HP"]
    for data, values in TABLES["dp_hp"][table].items():
        if data == "columns":
            continue
        for method, paper in zip(columns, values, strict=True):
            row = kept.get((data, method))
            text = "; ".join(f"{one:.3f}" for one in (paper if isinstance(paper, list) else [paper]))
            item = f"DP-HP {table.removeprefix('table_')}, {data}, {method}"
            if row is None:
                yield item, text, NONE, "missing", NONE
                continue
            found = [spoken(row["ROC of decisions"]), spoken(row["PRC of decisions"])]
            like = all(abs(own - theirs) <= 2 * spread for (own, spread), theirs in zip(found, paper, strict=True))
            yield item, text, "; ".join(f"{own:.3f}" for own, _ in found), verdict(like), day_of(row, name)


def table_2():
    """Return the rows of Table 2; DP-HP has the paper's features."""
    names = {"real data": "Real", "DP-HP, the paper's features": "DP-HP", "DP-MERF": "DP-MERF"}
    kept = {(row["table"], names.get(row["trained on"])): row for row in rows_of("dp_hp_classification")}
    return of_classifiers("table_2", "dp_hp_classification", kept)


def table_7():
    """Return the rows of Table 7, without privacy."""
    kept = {("adult", row["method"]): row for row in rows_of("dp_hp_without_noise") if "∞" in str(row["ε"])}
    return of_classifiers("table_7", "dp_hp_without_noise", kept)


def table_1():
    """DP-HP's Table 1: distances of marginals of α = 3 and 4 at two ε, by the paper's recipe and distance."""
    name, methods = "dp_hp_marginals", {"DP-HP, sum + products (paper)": "DP-HP", "DP-MERF, Fourier": "DP-MERF"}
    kept = {(methods.get(row["method"]), row["ε"]): row for row in rows_of(name) if row["table"] == "simple"}
    for key, of_methods in TABLES["dp_hp"]["table_1"].items():
        data, alpha = key.split("_")
        for method, values in of_methods.items():
            for epsilon, paper in zip((0.3, 0.1), values, strict=True):
                item = f"DP-HP 1, {data}, α {alpha}, ε {epsilon}, {method}"
                row = kept.get((method, epsilon), {}) if data == "adult" else {}
                cell = row.get(f"α = {alpha}")
                if cell is None:
                    yield item, f"{paper:.3f}", NONE, "missing", NONE
                    continue
                own, spread = spoken(cell)
                yield item, f"{paper:.3f}", f"{own:.3f}", verdict(abs(own - paper) <= 2 * spread), day_of(row, name)


def tables_5_and_8():
    """DP-HP's Tables 5 and 8: distances over γ, and over the columns of a product; ours of 3 and 4 columns joined."""
    name, kept = "dp_hp_paper", {}
    for row in rows_of(name):
        if row["ε"] == 0.3:
            kept[row["columns"], row["γ"]] = row
    over_gamma = {key.removeprefix("g_").replace("_", "."): one for key, one in TABLES["dp_hp"]["table_5"].items()}
    asked = [(f"DP-HP 5, γ {gamma}", values, kept.get((3, float(gamma)))) for gamma, values in over_gamma.items()]
    over_columns = zip((2, 5, 7), *TABLES["dp_hp"]["table_8"].values(), strict=True)
    asked += [(f"DP-HP 8, {one} columns", values, kept.get((one, "by noise"))) for one, *values in over_columns]
    for item, paper, row in asked:
        text = "; ".join(f"{one:.3f}" for one in paper)
        if row is None:
            yield item, text, NONE, "missing", NONE
        else:
            yield item, text, f"{row['3-way']}; {row['4-way']}", "not converged", day_of(row, name)


def settings():
    """DP-HP's Tables 3, 4, 6 and 9: sizes of data, and settings that the tests build."""
    tables = TABLES["dp_hp"]
    for data, (samples, classes, features) in tables["table_3"].items():
        here = ("the same", "reproduced", TESTED) if data == "adult" else (NONE, "missing", NONE)
        yield f"DP-HP 3, {data}", f"{samples}; {classes}; {features}", *here
    for table, names in (("table_4", "rate, order, columns, γ, order of the sum"), ("table_6", SETTINGS_6)):
        for data, values in tables[table].items():
            shown = "; ".join(f"{one:g}" for one in values)
            yield f"DP-HP {table[-1]}, {data}: {names}", shown, "builds", "reproduced", TESTED
    for place, data in enumerate(("MNIST", "MNIST, private", "Fashion-MNIST", "Fashion-MNIST, private")):
        values = [tables["table_9"][name][place] for name in ("gamma", "kernel_length")]
        values += [tables["table_9"][name] for name in ("order_sum", "order_product", "batch", "rate")]
        # The presets are of the private settings.
        here = ("the preset", "reproduced", TESTED) if place % 2 else (NONE, "missing", NONE)
        yield f"DP-HP 9, {data}: γ, l², orders, batch, rate", "; ".join(f"{one:g}" for one in values), *here


def text():
    """Return the table."""
    head = "| table, row | the paper | here | verdict | measured |\n|---|---|---|---|---|\n"
    rows = [*table_1(), *table_2(), *settings(), *tables_5_and_8(), *table_7(), *table_5(), *tables_8_to_10()]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKS.sub(lambda mark: f"{mark[1]}{text()}{mark[2]}", page), encoding="utf-8")
