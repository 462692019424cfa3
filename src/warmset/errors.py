"""What can go wrong, and what a reader repaired.

WarmsetError
  InputError               a file or a flag is wrong: where, what was found, what is allowed
    TraceFormatError       a request log cannot be read
    ScenarioError          a scenario or a flag cannot be used
  UnsupportedModelError    the config has a cache class that is not known: refused, never guessed
  InfeasibleError          it does not fit: needed and available, and the smallest change that fits
"""

from dataclasses import dataclass


class WarmsetError(Exception):
    """Every error that Warmset raises on purpose; its text is one line for a person."""

    exit_code = 1


class InputError(WarmsetError):
    """A file or a flag is wrong."""

    exit_code = 2


class TraceFormatError(InputError):
    """A request log cannot be read."""


class ScenarioError(InputError):
    """A scenario file or a flag cannot be used."""


class UnsupportedModelError(InputError):
    """A model config holds a cache class that Warmset does not size."""


class InfeasibleError(WarmsetError):
    """The model does not fit the hardware, whatever the traffic."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reader repaired, skipped or noticed: counted, with the first place it was seen."""

    code: str
    count: int
    first_example: str

    def __post_init__(self) -> None:
        """A finding that was never seen is not a finding."""
        if self.count < 1:
            raise ValueError(f"finding {self.code} counts {self.count} cases")
