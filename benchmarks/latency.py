"""How far the latency model is from published measurements, family by family.

Run as `.venv/bin/python -m benchmarks.latency`. The points are not part of the repository: they are two
tables in a folder beside it. Constants may come from `fit.csv`, never from `validate.csv`.
Everything is predicted by the main job's own code: `engine_times`, `load_path`, `serve`.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.latency_fit import fit_families
from benchmarks.latency_validation import validation_families
from benchmarks.published import PUBLISHED, Family, LeftOut, Point, read_rows
from warmset.stats import quantile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, default=PUBLISHED, help="folder of fit.csv, validate.csv")
    folder = parser.parse_args().published
    if not all((folder / name).is_file() for name in ("fit.csv", "validate.csv")):
        print(f"No published points in {folder}: nothing to compare. They lie beside the repository.")
        return
    fit, left_out = read_rows(folder / "fit.csv"), Counter[str]()
    left_out["sil TTFT: the queueing of a closed loop is inside"] = sum(
        row.family == "sil" and row.metric.startswith("TTFT") for row in fit
    )
    left_out["other families: kernels, statistics, ratios, other accelerators"] = sum(
        row.family not in {"sil", "spl", "mcpd", "ucm"} for row in fit
    )
    print("FIT SET: constants may be chosen on these points\n")
    print_families(fit_families(fit, left_out))
    print_left_out(left_out)
    validation, left_out = read_rows(folder / "validate.csv"), Counter[str]()
    print("\nVALIDATION SET: never used to choose a constant\n")
    print_families(validation_families(validation, left_out))
    print_left_out(left_out)


def print_families(families: Iterable[Family]) -> None:
    for family in families:
        print(f"{family.title}\n  {'':<34}{'points':>8}{'MAPE':>9}{'median':>9}{'p90':>9}{'inside':>9}")
        groups: dict[str, list[Point]] = {}
        for point in family.points:
            groups.setdefault(point.group, []).append(point)
        for group, points in groups.items():
            print_line(group, points)
        if len(groups) > 1:
            print_line("all", family.points)
        if family.bar is not None:
            error = mean_error(family.points)
            met = "met" if error <= family.bar else "missed"
            print(f"  bar {family.bar:.1%}: {met} with {error:.1%}")
        print()


def print_line(name: str, points: list[Point]) -> None:
    errors = [abs(point.ratio - 1) for point in points]
    median = quantile([point.ratio for point in points], 0.5)
    inside = sum(point.inside for point in points) / len(points)
    print(
        f"  {name:<34}{len(points):>8}{mean_error(points):>9.1%}{median:>9.2f}"
        f"{quantile(errors, 0.9):>9.1%}{inside:>9.0%}"
    )


def mean_error(points: list[Point]) -> float:
    return sum(abs(point.ratio - 1) for point in points) / len(points)


def print_left_out(left_out: LeftOut) -> None:
    print("Left out")
    for reason, count in left_out.items():
        print(f"  {count:>5}  {reason}")


if __name__ == "__main__":
    main()
