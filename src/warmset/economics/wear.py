"""What write-through does to flash."""

from warmset.evaluation import TierWear
from warmset.facts import Estimate
from warmset.units import HOURS_PER_YEAR

DAYS_PER_YEAR = 365


def flash_hours(
    capacity_bytes: int,
    written_bytes_per_s: float,
    drive_writes_per_day: float,
    warranty_years: float,
    years: float,
) -> float:
    """Hours until flash is replaced: its age, or its rated writes used up, whichever comes first.

    Formula: rated bytes = DWPD x capacity x 365 x warranty years.
    """
    by_age = years * HOURS_PER_YEAR
    if written_bytes_per_s <= 0:
        return by_age
    rated_bytes = drive_writes_per_day * capacity_bytes * DAYS_PER_YEAR * warranty_years
    return min(by_age, rated_bytes / written_bytes_per_s / 3600)


def wear_of(
    capacity_bytes: int,
    written_bytes_per_s: tuple[float, float, float],
    drive_writes_per_day: tuple[float, float, float],
    warranty_years: float,
) -> TierWear:
    """Writes a day and the life they leave; each triple is low, middle, high."""
    per_day = [rate * 86400 for rate in written_bytes_per_s]
    writes = [daily / capacity_bytes for daily in per_day]
    return TierWear(
        written_bytes_per_day=Estimate(low=per_day[0], mid=per_day[1], high=per_day[2], unit="bytes_per_day"),
        drive_writes_per_day=Estimate(low=writes[0], mid=writes[1], high=writes[2], unit="per_day"),
        years_of_life=_life(writes, drive_writes_per_day, warranty_years),
    )


def _life(writes: list[float], rated: tuple[float, float, float], warranty_years: float) -> Estimate:
    if writes[1] <= 0:
        return Estimate(mid=None, unit="years", note="nothing_written")
    return Estimate(
        low=warranty_years * rated[0] / writes[2],
        mid=warranty_years * rated[1] / writes[1],
        high=warranty_years * rated[2] / writes[0] if writes[0] > 0 else None,
        unit="years",
    )
