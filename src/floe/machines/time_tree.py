"""The greatest timestamp of blocks of offsets: what a lookup by time needs, since timestamps need not rise.

A node of level L covers 64^L offsets, aligned; its value is the greatest timestamp of the rows that touch
it. A node is complete when the log end has reached its end. Each range keeps one open node per level; a
node is written when it completes, unless fewer than `NODE_ROWS_MIN` rows touch it: those are quicker read
than described.

Open nodes are folded lazily: level 1 holds what came in since its start, a higher level only what its
completed children held. So a row that passes no border touches level 1 alone.

Invariants:
- A node's value is at least the greatest timestamp of every row that touches it, also after the front has
  been trimmed or rows have been replaced by fewer ones.
- A complete node that is not written is touched by fewer than `NODE_ROWS_MIN` rows.
"""

import msgspec

FAN_OUT_BITS = 6
FAN_OUT = 1 << FAN_OUT_BITS
NODE_ROWS_MIN = 4  # straddling rows are counted once per child, so a written node may have half as many
NO_TIMESTAMP = -1

# Greatest timestamp and number of rows of the open node of level 1, of level 2, and so on, in one flat tuple:
# made anew for every row, and packed as it is.
OpenNodes = tuple[int, ...]

_EMPTY = (NO_TIMESTAMP, 0)


class Node(msgspec.Struct, frozen=True, gc=False):
    """A complete node, to be written; it covers the offsets from index * 64^level on."""

    level: int
    index: int
    max_timestamp: int


def append(
    open_nodes: OpenNodes, first: int, last: int, max_timestamp: int
) -> tuple[OpenNodes, list[Node] | None]:
    """The open nodes after a row, and the nodes it completes."""
    end = last + 1
    greatest, row_count = open_nodes[:2] or _EMPTY
    if max_timestamp > greatest:
        greatest = max_timestamp
    # Addition is twice as quick as unpacking here, and this runs once per row.
    nodes = (greatest, row_count + 1) + open_nodes[2:]  # noqa: RUF005
    if first >> FAN_OUT_BITS == end >> FAN_OUT_BITS:
        return nodes, None
    return _close(list(nodes), first, end, max_timestamp)


def _close(nodes: list[int], first: int, end: int, max_timestamp: int) -> tuple[OpenNodes, list[Node]]:
    """Complete the nodes whose end the row reaches, from level 1 upwards."""
    completed = []
    level = 1
    while True:
        shift, at = FAN_OUT_BITS * level, 2 * level - 2
        greatest, row_count = nodes[at], nodes[at + 1]
        if row_count >= NODE_ROWS_MIN:
            completed.append(Node(level, first >> shift, greatest))
        # The row reaches into the next node of this level, unless it ends where that begins.
        nodes[at : at + 2] = (max_timestamp, 1) if end & ((1 << shift) - 1) else _EMPTY
        if at + 2 == len(nodes):
            nodes += _EMPTY
        nodes[at + 2] = max(greatest, nodes[at + 2])
        nodes[at + 3] += row_count
        if first >> (shift + FAN_OUT_BITS) == end >> (shift + FAN_OUT_BITS):
            return tuple(nodes), completed
        level += 1
