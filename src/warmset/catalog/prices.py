"""Quoted prices, kept in the currency of the quote until somebody asks for another."""

import msgspec

from warmset.catalog.accelerators import find_accelerator
from warmset.catalog.tables import PriceRow, price_rows
from warmset.errors import ScenarioError
from warmset.facts import Fact

INPUT = " input"
CACHED_INPUT = " cached input"


class TokenPrice(msgspec.Struct, frozen=True, kw_only=True):
    """What an API charges for a million input tokens, computed and served from its cache."""

    model: str
    input_price: Fact
    cached_price: Fact

    @property
    def cached_ratio(self) -> float:
        """The price of a cached token over the price of a computed one."""
        return self.cached_price.value / self.input_price.value


def find_price(category: str, item: str) -> Fact | None:
    """The newest quote of an item; its unit starts with the currency (`CNY per 8 GPUs`).

    Returns `None` where the catalog says that no price was found.

    Raises: KeyError when the catalog has no such row, which is a bug of ours.

    >>> find_price("dram_rdimm", "DDR5 RDIMM 128 GB contract").value
    2250.0
    """
    quotes = [row for row in price_rows() if row.category == category and row.item == item]
    if not quotes:
        raise KeyError((category, item))
    return _fact(max(quotes, key=lambda row: row.date))


def module_price(accelerator: str) -> Fact | None:
    """Price of the 8-GPU module of an accelerator, without the server around it."""
    return _purchase(accelerator, "module")


def server_price(accelerator: str) -> Fact | None:
    """Price of the 8-GPU server of an accelerator, module included."""
    return _purchase(accelerator, "server")


def gpu_price(accelerator: str) -> Fact | None:
    """Price of one accelerator."""
    return _purchase(accelerator, "gpu")


def rental_prices(accelerator: str) -> tuple[Fact, ...]:
    """Every quoted GPU-hour of an accelerator, for a cross-check of a cost that was built bottom-up."""
    return _quotes(accelerator, "rental")


def token_prices() -> tuple[TokenPrice, ...]:
    """Every API model with a cached-input price: the market price of a hit."""
    by_item = {row.item: fact for row in price_rows() if row.category == "api" and (fact := _fact(row))}
    models = [item.removesuffix(CACHED_INPUT) for item in by_item if item.endswith(CACHED_INPUT)]
    return tuple(
        TokenPrice(
            model=model, input_price=by_item[model + INPUT], cached_price=by_item[model + CACHED_INPUT]
        )
        for model in models
        if model + INPUT in by_item
    )


def convert(fact: Fact, currency: str, fx: Fact) -> Fact:
    """A price in another currency at the middle of the rate `fx`, whose unit reads `CNY per USD`.

    The range of the price is kept. The range of the rate is not folded in: it is varied on its own.

    Raises: ScenarioError when the rate does not connect the two currencies.
    """
    quoted, _, basis = fact.unit.partition(" ")
    if quoted == currency:
        return fact
    if fx.unit == f"{currency} per {quoted}":
        factor = fx.value
    elif fx.unit == f"{quoted} per {currency}":
        factor = 1 / fx.value
    else:
        raise ScenarioError(f"no exchange rate from {quoted} to {currency}: the one given is in {fx.unit}")
    rate_note = f"quoted in {quoted}, converted at {fx.value} {fx.unit} ({fx.date})"
    return msgspec.structs.replace(
        fact,
        value=fact.value * factor,
        low=None if fact.low is None else fact.low * factor,
        high=None if fact.high is None else fact.high * factor,
        unit=f"{currency} {basis}".strip(),
        note="; ".join(text for text in (rate_note, fact.note) if text),
    )


def _purchase(accelerator: str, scope: str) -> Fact | None:
    quotes = _quotes(accelerator, scope)
    return max(quotes, key=lambda quote: quote.date) if quotes else None


def _quotes(accelerator: str, scope: str) -> tuple[Fact, ...]:
    name = find_accelerator(accelerator).name
    priced = (_fact(row) for row in price_rows() if row.accelerator == name and row.scope == scope)
    return tuple(quote for quote in priced if quote is not None)


def _fact(row: PriceRow) -> Fact | None:
    if row.origin is None:
        return None
    value, origin, note = row.value, row.origin, row.note
    if value is None:
        if row.low is None or row.high is None:
            return None
        value, origin = (row.low + row.high) / 2, "assumed"
        note = "; ".join(text for text in (note, "only a range was quoted; the value is its middle") if text)
    return Fact(
        value=value,
        unit=f"{row.currency} {row.unit}".strip(),
        origin=origin,
        source=row.source,
        date=row.date,
        low=row.low,
        high=row.high,
        note="; ".join(text for text in (row.item, row.region, note) if text),
    )
