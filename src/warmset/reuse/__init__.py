"""How much of a trace was seen before, at every capacity and every time to live, from one pass."""

from warmset.reuse.curve import CapacityCurve, capacity_curve
from warmset.reuse.profile import Hits, ReuseProfile, profile_reuse
from warmset.reuse.working_set import WINDOWS_S, ResidentBlocks, WindowBlocks, resident_blocks, window_blocks

__all__ = [
    "WINDOWS_S",
    "CapacityCurve",
    "Hits",
    "ResidentBlocks",
    "ReuseProfile",
    "WindowBlocks",
    "capacity_curve",
    "profile_reuse",
    "resident_blocks",
    "window_blocks",
]
