"""Print the results that judging_quality.py wrote with ``--json`` as the tables of docs/results/judging.md.

Usage: python benchmarks/long/judging_tables.py RESULTS.jsonl [...]
"""

import json
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def main() -> int:
    rows: dict[tuple[Any, ...], Row] = {}
    for name in sys.argv[1:]:
        for line in Path(name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            # A run that was repeated counts once, as it was measured last.
            names = ("dataset", "articles", "quality", "method", "wording", "train_items", "sort", "seed")
            rows[tuple(row[name] for name in names)] = row
    models = sorted({row.get("model", "local:smollm2") for row in rows.values()})
    if len(models) > 1:
        sys.exit(f"The results are of several models ({', '.join(models)}): name the files of one.")
    for dataset in dict.fromkeys(row["dataset"] for row in rows.values()):
        for size in sorted({row["train_items"] for row in rows.values() if row["dataset"] == dataset}):
            ours = [
                row
                for row in rows.values()
                if (row["dataset"], row["train_items"], row["sort"]) == (dataset, size, "strengths")
            ]
            _print_agreement(dataset, size, ours)
    _print_sorts(list(rows.values()))
    _print_curves(list(rows.values()))
    return 0


def _print_agreement(dataset: str, size: int, rows: list[Row]) -> None:
    print(f"\n### {dataset}, {size} labelled items, {max(row['n_groups'] for row in rows)} articles\n")
    print(
        "| aspect | method | right on differing pairs | longer | gain over longer | p | nearly equal length (n) | gain "
        "| three-way (constant) | Spearman | Kendall | failed |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: row["quality"]):
        ours, longer, constant = row["agreement"], row["baselines"]["longer"], row["baselines"]["constant"]
        near = ours["accuracy_nearly_equal_length"]
        cells = (
            row["quality"],
            row["method"],
            _figure(ours["accuracy_differing"]),
            _value(longer["accuracy_differing"]),
            _figure(row["versus_longer"]["difference"], sign=True),
            f"{row['versus_longer']['p_value']:.3f}",
            f"{_value(near)} ({near['n']})",
            _figure(row["versus_longer_nearly_equal"]["difference"], sign=True),
            f"{_value(ours['accuracy_three_way'])} ({_value(constant['accuracy_three_way'])})",
            _figure(ours["spearman"]),
            _value(ours["kendall"]),
            str(row["failed"]),
        )
        print(f"| {' | '.join(cells)} |")


def _print_sorts(rows: list[Row]) -> None:
    kept = [row for row in rows if any(other["sort"] != row["sort"] and _same(other, row) for other in rows)]
    if kept:
        print(
            "\n### Ways of sorting\n\n| data | aspect | method | sort | Spearman | Kendall |\n|---|---|---|---|---|---|"
        )
    for row in kept:
        ranks = row["agreement"]
        cells = (row["dataset"], row["quality"], row["method"], row["sort"])
        print(f"| {' | '.join(cells)} | {_figure(ranks['spearman'])} | {_figure(ranks['kendall'])} |")


def _print_curves(rows: list[Row]) -> None:
    kept = [row for row in rows if row["learning_curve"]]
    if kept:
        print("\n### Learning curves\n\n| data | aspect | method | labelled items: right |\n|---|---|---|---|")
    for row in kept:
        points = ", ".join(
            f"{point['items']}: {_value(point['accuracy_differing'])}" for point in row["learning_curve"]
        )
        print(f"| {row['dataset']} | {row['quality']} | {row['method']} | {points} |")


def _same(first: Row, second: Row) -> bool:
    return all(first[name] == second[name] for name in ("dataset", "quality", "method", "train_items", "wording"))


def _value(figure: Row) -> str:
    return "-" if figure["value"] is None else f"{figure['value']:.3f}"


def _figure(figure: Row, *, sign: bool = False) -> str:
    if figure["value"] is None:
        return "-"
    plus = "+" if sign else ""
    return f"{figure['value']:{plus}.3f} [{figure['low']:{plus}.3f}, {figure['high']:{plus}.3f}]"


if __name__ == "__main__":
    sys.exit(main())
