"""Groups of caches whose pages have unequal sizes and lie side by side in a block.

A bucket holds caches that always need the same number of blocks. A bucket of several page sizes, with as many
layers of each, is a repeating pattern; other buckets are cut into groups of about as many repeats.

Source: vLLM 0.33.0 v1/core/kv_cache_planning.py _get_packed_kv_cache_groups, _approximate_gcd.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from warmset.model.engines.vllm_pages import SLIDING_KINDS, Cache, ceil_div, is_uniform


@dataclass(frozen=True, slots=True)
class _Bucket:
    caches: tuple[Cache, ...]

    @property
    def num_by_size(self) -> Counter[int]:
        """Caches by bytes of their page."""
        return Counter(cache.page.page_bytes for cache in self.caches)

    @property
    def is_balanced(self) -> bool:
        return len(set(self.num_by_size.values())) == 1

    @property
    def num_repeats(self) -> int:
        return max(self.num_by_size.values())

    def widest_bytes(self, num_groups: int) -> int:
        """Bytes of the widest of the groups that the bucket is cut into."""
        return sum(ceil_div(count, num_groups) * size for size, count in self.num_by_size.items())

    def cut(self, num_groups: int) -> list[tuple[Cache, ...]]:
        """Groups of every n-th repeat, so that pipeline stages have their share of each."""
        by_size = [
            [cache for cache in self.caches if cache.page.page_bytes == size] for size in self.num_by_size
        ]
        repeats = list(zip(*by_size, strict=True))
        return [
            tuple(cache for repeat in repeats[start::num_groups] for cache in repeat)
            for start in range(num_groups)
        ]


def packed_groups(caches: Sequence[Cache]) -> tuple[tuple[Cache, ...], ...]:
    """The groups of all buckets; states, rings and windows are cut finer so as not to widen the block."""
    buckets = _buckets(caches)
    repeats = _group_repeats(buckets)
    counts = [_num_groups(bucket, repeats) for bucket in buckets]
    anchor_bytes = max(
        bucket.widest_bytes(len(bucket.caches) if _is_state(bucket, repeats) else count)
        for bucket, count in zip(buckets, counts, strict=True)
    )
    groups: list[tuple[Cache, ...]] = []
    for bucket, count in zip(buckets, counts, strict=True):
        num_groups = count
        if _is_state(bucket, repeats):
            per_block = max(anchor_bytes // bucket.caches[0].page.page_bytes, 1)
            num_groups = max(num_groups, ceil_div(len(bucket.caches), per_block))
        groups += [bucket.caches] if num_groups == 1 else bucket.cut(num_groups)
    return tuple(groups)


def _buckets(caches: Sequence[Cache]) -> list[_Bucket]:
    found: list[list[Cache]] = []
    for cache in caches:
        for bucket in found:
            if is_uniform([*(other.page for other in bucket), cache.page]):
                bucket.append(cache)
                break
        else:
            found.append([cache])
    return [_Bucket(tuple(bucket)) for bucket in found]


def _group_repeats(buckets: Sequence[_Bucket]) -> int | None:
    """Repeats in a group: at least those of the longest pattern, with the least padding over all buckets."""
    balanced = [bucket for bucket in buckets if bucket.is_balanced]
    longest = max((bucket.num_repeats for bucket in balanced if len(bucket.num_by_size) > 1), default=0)
    return _padding_divisor([bucket.num_repeats for bucket in balanced], longest) if longest else None


def _padding_divisor(numbers: Sequence[int], least: int) -> int:
    """The number from `least` on whose multiples are least above all numbers; of equals the largest."""
    candidates = range(least, max([least, *numbers]) + 1)
    return min(candidates, key=lambda size: (sum(-number % size for number in numbers), -size))


def _num_groups(bucket: _Bucket, repeats: int | None) -> int:
    if repeats is None or not bucket.is_balanced:
        return 1
    return ceil_div(bucket.num_repeats, repeats)


def _is_state(bucket: _Bucket, repeats: int | None) -> bool:
    kind = bucket.caches[0].page.kind
    return kind in {"state", "ring"} or (repeats is None and kind in SLIDING_KINDS)
