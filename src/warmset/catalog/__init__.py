"""Facts as data files, each with its source and date: accelerators, media, prices and our own defaults."""

from warmset.catalog.accelerators import Accelerator, accelerator_names, find_accelerator
from warmset.catalog.defaults import default, defaults
from warmset.catalog.media import find_medium
from warmset.catalog.prices import (
    TokenPrice,
    convert,
    find_price,
    gpu_price,
    module_price,
    rental_prices,
    server_price,
    token_prices,
)

__all__ = [
    "Accelerator",
    "TokenPrice",
    "accelerator_names",
    "convert",
    "default",
    "defaults",
    "find_accelerator",
    "find_medium",
    "find_price",
    "gpu_price",
    "module_price",
    "rental_prices",
    "server_price",
    "token_prices",
]
