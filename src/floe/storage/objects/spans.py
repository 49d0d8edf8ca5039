"""Which requests read several spans of one object: neighbours share one, strangers do not.

Two spans are read together when the gap between them costs less than a request would: at 100 MB/s and 10 ms
to the first byte, up to 1 MiB.
"""

from collections.abc import Sequence

GAP_BYTES_MAX = 1 << 20

Span = tuple[int, int]  # position, size


def merged(spans: Sequence[Span], gap_bytes_max: int = GAP_BYTES_MAX) -> list[Span]:
    """Spans that cover all of `spans`, in order, further apart from each other than the gap."""
    result: list[Span] = []
    for position, size in sorted(spans):
        if result:
            last_position, last_size = result[-1]
            if position <= last_position + last_size + gap_bytes_max:
                end = max(last_position + last_size, position + size)
                result[-1] = (last_position, end - last_position)
                continue
        result.append((position, size))
    return result


def cut(spans: Sequence[Span], wholes: Sequence[Span], contents: Sequence[memoryview]) -> list[memoryview]:
    """Each of `spans` out of the contents of the `merged` spans."""
    views: list[memoryview] = []
    for position, size in spans:
        for (start, length), content in zip(wholes, contents, strict=True):
            if start <= position and position + size <= start + length:
                views.append(content[position - start : position - start + size])
                break
        else:
            raise ValueError(f"no read covers the span. position={position} size={size}")
    return views
