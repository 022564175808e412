"""Grouping texts of different lengths into batches that waste little padding."""

from collections.abc import Iterator, Sequence


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group texts of similar length, longest first, so that no batch exceeds a number of padded tokens.

    Args:
        lengths: Tokens of each text.
        budget: Most tokens a batch may have, padding included; a single longer text is a batch of its own.

    Yields:
        Indices into ``lengths``; each index comes exactly once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batch: list[int] = []
    for index in order:
        # Longest first: the first text of a batch decides the width of all of it.
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
