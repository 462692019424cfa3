"""Closed forms against loops over every query."""

import random

import numpy as np
import pytest

from warmset.model.pairs import decode_keys, index_keys, twice_the_index_pairs, twice_the_pairs
from warmset.model.spec import Attention, Indexer

SHAPE = {"num_heads": 1, "key_size": 1, "value_size": 1}
INDEXER = {"num_heads": 1, "key_size": 1}


def keys_of(part, position):
    """What the query at a position, counted from 1, attends to: by listing the entries one by one."""
    tokens = range(1, position + 1)
    if part.reach == "cross":
        return part.span_tokens
    if part.reach == "sliding":
        return sum(position - token < part.span_tokens for token in tokens)
    if part.reach == "chunked":
        return sum((token - 1) // part.span_tokens == (position - 1) // part.span_tokens for token in tokens)
    entries = sum(token % max(part.tokens_per_entry, 1) == 0 for token in tokens)
    return entries if part.indexer is None else min(entries, part.indexer.top_k)


def random_parts(rng):
    span, ratio, top_k = rng.randint(1, 40), rng.randint(0, 9), rng.randint(1, 30)
    yield Attention(**SHAPE)
    yield Attention(**SHAPE, reach="sliding", span_tokens=span)
    yield Attention(**SHAPE, reach="chunked", span_tokens=span)
    yield Attention(**SHAPE, reach="cross", span_tokens=span)
    yield Attention(**SHAPE, tokens_per_entry=ratio)
    yield Attention(**SHAPE, tokens_per_entry=ratio, indexer=Indexer(**INDEXER, top_k=top_k))
    yield Attention(**SHAPE, indexer=Indexer(**INDEXER, top_k=top_k))


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_those_of_a_loop(seed):
    rng = random.Random(seed)
    for part in random_parts(rng):
        new, cached = rng.randint(0, 90), rng.randint(0, 90)
        slow = sum(keys_of(part, cached + i) for i in range(1, new + 1))
        assert twice_the_pairs(part, new, cached) == 2 * slow, (part, new, cached)
        column = twice_the_pairs(part, np.array([float(new)]), np.array([float(cached)]))
        assert column.tolist() == [2 * slow]
        assert decode_keys(part, cached) == (keys_of(part, cached) if cached else 0)


@pytest.mark.parametrize("tokens_per_key", [1, 4, 16])
def test_an_index_is_scored_in_full(tokens_per_key):
    indexer = Indexer(**INDEXER, top_k=2, tokens_per_key=tokens_per_key)
    slow = sum(position // tokens_per_key for position in range(11, 51))
    assert twice_the_index_pairs(indexer, 40, 10) == 2 * slow
    assert index_keys(indexer, 50) == 50 // tokens_per_key


def test_long_sequences_stay_exact():
    # Beyond the 53 bits of a float: 2^31 tokens on as many.
    new = cached = 2**31
    assert twice_the_pairs(Attention(**SHAPE), new, cached) == 2 * new * cached + new * (new + 1)
