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

from typing import NamedTuple

FAN_OUT_BITS = 6
FAN_OUT = 1 << FAN_OUT_BITS
NODE_ROWS_MIN = 4  # straddling rows are counted once per child, so a written node may have half as many
NO_TIMESTAMP = -1


class OpenNode(NamedTuple):
    """The node under construction at one level."""

    max_timestamp: int = NO_TIMESTAMP
    row_count: int = 0


class Node(NamedTuple):
    """A complete node, to be written."""

    level: int
    number: int  # the node covers the offsets from number * 64^level on
    max_timestamp: int


OpenNodes = tuple[OpenNode, ...]  # of level 1, 2, ...
_EMPTY = OpenNode()


def append(
    open_nodes: OpenNodes, first: int, last: int, max_timestamp: int
) -> tuple[OpenNodes, list[Node] | None]:
    """The open nodes after a row, and the nodes it completes."""
    end = last + 1
    bottom = open_nodes[0] if open_nodes else _EMPTY
    greatest = max(max_timestamp, bottom.max_timestamp)
    if first >> FAN_OUT_BITS == end >> FAN_OUT_BITS:
        return (OpenNode(greatest, bottom.row_count + 1), *open_nodes[1:]), None
    return _close(list(open_nodes) or [_EMPTY], first, end, max_timestamp, greatest)


def _close(
    nodes: list[OpenNode], first: int, end: int, max_timestamp: int, greatest: int
) -> tuple[OpenNodes, list[Node]]:
    """Complete the nodes whose end the row reaches, from level 1 upwards."""
    completed = []
    row_count = nodes[0].row_count + 1
    level = 1
    while True:
        shift = FAN_OUT_BITS * level
        if row_count >= NODE_ROWS_MIN:
            completed.append(Node(level, first >> shift, greatest))
        nodes[level - 1] = OpenNode(max_timestamp, 1) if end & ((1 << shift) - 1) else _EMPTY
        if level == len(nodes):
            nodes.append(_EMPTY)
        parent = nodes[level]
        greatest = max(greatest, parent.max_timestamp)
        row_count += parent.row_count
        if first >> (shift + FAN_OUT_BITS) == end >> (shift + FAN_OUT_BITS):
            nodes[level] = OpenNode(greatest, row_count)
            return tuple(nodes), completed
        level += 1
