"""Every value of the papers' tables that data here can be compared with, beside ours, in docs/papers.md.

    python benchmarks/paper_values.py

Nothing is measured: values are of `papers/tables.toml` and of the records in `results/`. A verdict is by a rule:

    accuracy   agrees within twice the binomial error of the two accuracies on 10 000 test images
    change     the same: federated accuracy minus that of one party
    score      membership scores agree within a factor of two
    ROC, PRC   the paper's value is within two standard deviations of ours over runs; within .02 of a single run
"""

import json
import math
import re
from pathlib import Path

from _papers import published
from _record import result_of

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
MARKS = re.compile(r"(<!-- paper_values -->\n).*?(<!-- end -->)", re.DOTALL)
TABLES = published("tables")
NONE = "–"


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


def text():
    """Return the table."""
    head = "| table, row | the paper | here | verdict | measured |\n|---|---|---|---|---|\n"
    rows = [*table_2(), *table_7(), *table_5(), *tables_8_to_10()]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKS.sub(lambda mark: f"{mark[1]}{text()}{mark[2]}", page), encoding="utf-8")
