"""One line of a derivation."""

import msgspec


class Step(msgspec.Struct, frozen=True):
    """How one number was made, for people. `formula` has the numbers in it."""

    label: str
    formula: str
    result: str
    source: str
