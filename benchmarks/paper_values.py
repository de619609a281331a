"""Every value of the papers' tables beside ours, with a verdict, in docs/papers_values.md.

    python benchmarks/paper_values.py

Nothing is measured: values are of `papers/tables.toml` and of the records in `results/`. A verdict is by a rule:

    accuracy   agrees within twice the binomial error of the two accuracies on 10 000 test images
    change     the same: federated accuracy minus that of one party
    score      membership scores agree within a factor of two; a lower score is better
    time       agrees within a factor of two; ours is of one thread, on another machine
    ROC, PRC   the paper's value is within two standard deviations of ours over runs; within .02 of a single run
    marginals  the same; by single runs whose fit learns no dependence of columns, "not earned: not converged"
    settings   agree if `pytest tests/benchmarks/test_published.py` builds them
    order      of DP-HP and DP-MERF: contradicted if it is the other one by more than two standard deviations

What does not agree is better or worse than printed. What was not measured is "not earned", with the reason.
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
AGREES, BETTER, WORSE, CONTRADICTED = "agrees", "better than printed", "worse than printed", "order contradicted"
NO_DATA, NO_PROGRAM, NOT_RUN = "not earned: no data here", "not earned: a program of others", "not earned: not run"
NOT_CONVERGED = "not earned: not converged"
OTHERS = ("PrivBayes", "DP-CGAN", "DP-GAN")  # programs that are not here
HERE = ("adult", "cervical")  # tables that are
TESTED = "2026-11-27"  # day on which the tests of settings ran
TIMED = ("rarity", "fld", "ken_eigen", "ken_cholesky", "finc")
TIMED_HERE = ("Rarity + clustering", "FLD + clustering", "KEN, eigen", "KEN, Cholesky", "FINC")
SETTINGS_6 = "rate, order, columns, order of the sum, γ"


def rows_of(name):
    return json.loads(result_of(name).read_text())["rows"] if result_of(name).exists() else []


def day_of(row, name):
    """Return the day on which a row was measured."""
    return row.get("measured", json.loads(result_of(name).read_text())["date"]).split(" on ")[-1]


def judged(*gains):
    """Return the verdict on numbers by their gains over the paper in allowed errors, positive where ours is better."""
    if all(abs(gain) <= 1 for gain in gains):
        return AGREES
    return WORSE if min(gains) < -1 else BETTER


def by_factor(ours, paper):
    """Return how much lower than the paper's a number is, in factors of two: a score, or a time."""
    if min(ours, paper) <= 0:
        return 0.0 if ours == paper else -math.inf if ours > paper else math.inf
    return math.log2(paper / ours)


def gain(ours, paper, change=0.0):
    """Return by how many allowed errors an accuracy is above the paper's, or its change, near an accuracy `change`."""
    level = change or paper
    return (ours - paper) / (2 * math.sqrt(2 * level * (1 - level) / 10_000))


def table_5():
    """KAHM's Table 5, L = 1."""
    name, kept = "kahm_table5", {}
    for row in rows_of(name):
        if row["L"] == 1:
            kept[row["form"].partition(",")[0], row["ε"], row["n"]] = row
    whole = {(row["form"].partition(",")[0], row["ε"], row["n"]): row for row in rows_of("kahm_table5_whole")}
    seen = set()
    for epsilon, n, *values in TABLES["kahm"]["table_5"]["rows"]:
        again = ", printed again" if (epsilon, n) in seen else ""
        seen.add((epsilon, n))
        for form, accuracy, score in (("Def. 15", values[0], values[2]), ("Def. 12", values[1], values[3])):
            runs = [("", name, kept[form, epsilon, n])]
            if not again and (form, epsilon, n) in whole:
                runs.append((", 60 000 members", "kahm_table5_whole", whole[form, epsilon, n]))
            for members, record, ours in runs:
                yield (
                    f"KAHM 5, {form}, ε {epsilon:g}, n {n}{again}{members}",
                    f"{accuracy:.4f}; {score:.5f}",
                    f"{ours['accuracy']:.4f}; {ours['score']:.5f}",
                    f"accuracy {judged(gain(ours['accuracy'], accuracy))}, "
                    f"score {judged(by_factor(ours['score'], score))}",
                    day_of(ours, record),
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
            f"accuracy {judged(gain(row['accuracy'], spread))}, change {judged(gain(ours, change, row['accuracy']))}",
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
                yield item, text, NONE, why_not(data, method), NONE
                continue
            found = [spoken(row["ROC of decisions"]), spoken(row["PRC of decisions"])]
            gains = [(own - theirs) / (2 * spread) for (own, spread), theirs in zip(found, paper, strict=True)]
            yield item, text, "; ".join(f"{own:.3f}" for own, _ in found), judged(*gains), day_of(row, name)


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
                    yield item, f"{paper:.3f}", NONE, why_not(data, method), NONE
                    continue
                own, spread = spoken(cell)
                yield item, f"{paper:.3f}", f"{own:.3f}", judged((paper - own) / (2 * spread)), day_of(row, name)


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
            yield item, text, NONE, NOT_RUN, NONE
        else:
            yield item, text, f"{row['3-way']}; {row['4-way']}", NOT_CONVERGED, day_of(row, name)


def settings():
    """DP-HP's Tables 3, 4, 6 and 9: sizes of data, and settings that the tests build."""
    tables = TABLES["dp_hp"]
    for data, (samples, classes, features) in tables["table_3"].items():
        here = ("the same", AGREES, TESTED) if data == "adult" else (NONE, NO_DATA, NONE)
        yield f"DP-HP 3, {data}", f"{samples}; {classes}; {features}", *here
    for table, names in (("table_4", "rate, order, columns, γ, order of the sum"), ("table_6", SETTINGS_6)):
        for data, values in tables[table].items():
            shown = "; ".join(f"{one:g}" for one in values)
            yield f"DP-HP {table[-1]}, {data}: {names}", shown, "builds", AGREES, TESTED
    for place, data in enumerate(("MNIST", "MNIST, private", "Fashion-MNIST", "Fashion-MNIST, private")):
        values = [tables["table_9"][name][place] for name in ("gamma", "kernel_length")]
        values += [tables["table_9"][name] for name in ("order_sum", "order_product", "batch", "rate")]
        # The presets are of the private settings.
        here = ("the preset", AGREES, TESTED) if place % 2 else (NONE, NOT_RUN, NONE)
        yield f"DP-HP 9, {data}: γ, l², orders, batch, rate", "; ".join(f"{one:g}" for one in values), *here
    for name, parameters in tables["table_10"].items():
        shown = "; ".join(f"{key} {value}" for key, value in parameters.items()) or "defaults"
        yield f"DP-HP 10, {name}", shown, "the same", AGREES, TESTED


def orders():
    """Return whether DP-HP is ahead of DP-MERF here where the paper has it ahead; DP-HP has the paper's features."""
    features = "DP-HP, the paper's features"
    asked = [
        (f"DP-HP 1, adult, α {alpha}, ε {epsilon}", "dp_hp_marginals", f"α = {alpha}", -1, rows)
        for epsilon in (0.3, 0.1)
        for rows in [[row for row in rows_of("dp_hp_marginals") if row["table"] == "simple" and row["ε"] == epsilon]]
        for alpha in (3, 4)
    ]
    for data in HERE:
        rows = [row for row in rows_of("dp_hp_classification") if row["table"] == data]
        asked.append((f"DP-HP 2, {data}, ROC", "dp_hp_classification", "ROC of decisions", 1, rows))
    rows = [row for row in rows_of("dp_hp_without_noise") if "∞" in str(row["ε"])]
    asked.append(("DP-HP 7, adult, ROC", "dp_hp_without_noise", "ROC of decisions", 1, rows))
    names = {"DP-HP, sum + products (paper)": "DP-HP", features: "DP-HP", "DP-MERF, Fourier": "DP-MERF"}
    for item, record, column, sign, kept in asked:
        # The record of classifiers has DP-HP by ours, too, under the plain name, before the paper's features.
        found = {}
        for row in kept:
            method = row.get("method", row.get("trained on"))
            found[names.get(method, method)] = spoken(row[column])
        (own, spread), (other, noise) = found["DP-HP"], found["DP-MERF"]
        ahead, allowed = sign * (own - other), 2 * math.hypot(spread, noise)
        said = AGREES if ahead > allowed else CONTRADICTED if ahead < -allowed else "not earned: no gap here"
        yield f"{item}: order", "DP-HP ahead of DP-MERF", f"{own:.3f}, {other:.3f}", said, day_of(kept[-1], record)


def times():
    """FINC's Table 1 and KAHM's Table 11: seconds; ours of one thread."""
    name, columns = "table1", dict(zip(TIMED, TIMED_HERE, strict=True))
    kept = {row["n = m"]: row for row in rows_of(name)}
    table = TABLES["finc"]["table_1"]
    for device in ("cpu", "gpu"):
        for method, seconds in table[device].items():
            for n, paper in zip(table["n"], seconds, strict=False):
                item = f"FINC 1, {device.upper()}, {columns[method]}, n {n}"
                own = kept[n][columns[method]] if device == "cpu" else ""
                if own == "":
                    why = NOT_RUN if device == "cpu" else "not earned: another GPU"
                    yield item, f"{paper:g} s", NONE, why, NONE
                else:
                    yield item, f"{paper:g} s", f"{own:g} s", judged(by_factor(own, paper)), day_of(kept[n], name)
    name, by_size = "kahm_table11", {}
    for row in rows_of(name):
        by_size.setdefault(row["entries"], []).append(row)
    for size, paper in [*map(tuple, TABLES["kahm"]["table_11"]["rows"]), (20_000_000, TABLES["kahm"]["largest"])]:
        found = [row["s"] for row in by_size[size]]
        shown = " or ".join(f"{own:.3g}" for own in found) + " s"
        shapes = " or ".join(f"{row['N']} × {row['p']}" for row in by_size[size])
        said = judged(by_factor(max(found), paper))  # of the shapes that the size may have, by the slower one
        yield f"KAHM 11, {size} entries ({shapes})", f"{paper:g} s", shown, said, day_of(by_size[size][0], name)


def without_data():
    """KAHM's Tables 3, 4, 6 and 7, of groceries and heart rates; its Tables 1 and 2 have words alone."""
    tables = TABLES["kahm"]
    for table, unit in (("table_3", "%"), ("table_4", "AUC")):
        for method, values in tables[table].items():
            shown = "; ".join(f"{one:g}" for one in values)
            yield f"KAHM {table[-1]}, groceries, {method}, {unit}", shown, NONE, NO_DATA, NONE
    for table, data in (("table_6", "groceries"), ("table_7", "heart rates")):
        for epsilon, n, *values in tables[table]["rows"]:
            shown = "; ".join(f"{one:g}" for one in values)
            yield f"KAHM {table[-1]}, {data}, ε {epsilon:g}, n {n}", shown, NONE, NO_DATA, NONE


def why_not(data, method):
    """Return why a row of a table was not measured."""
    return NO_PROGRAM if method in OTHERS else NOT_RUN if data in HERE else NO_DATA


def text():
    """Return the table."""
    head = "| table, row | the paper | here | verdict | measured |\n|---|---|---|---|---|\n"
    rows = [*times(), *table_1(), *table_2(), *settings(), *tables_5_and_8(), *table_7(), *orders()]
    rows += [*without_data(), *table_5(), *tables_8_to_10()]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKS.sub(lambda mark: f"{mark[1]}{text()}{mark[2]}", page), encoding="utf-8")
