"""What a coordinator keeps of a range: state, limits, ends, and when its front can be dropped."""

import msgspec

from floe.machines.retention import NEVER, RangeLimits
from floe.machines.time_tree import OpenNodes
from floe.model.ids import Offset, TopicId
from floe.model.topic import RangeState


class RangeRecord(msgspec.Struct, frozen=True, gc=False):
    """One range at one moment.

    `log_start` may lie inside the first row. `rows_start` is the first offset of the first stored row and
    equals `log_end` when there is none; scans begin there, so that they do not pass over deleted keys.
    `head_time` and `head_size` are the first row's. `drop_at` is the range's time in the drop index, or
    `NEVER`.
    """

    topic_id: TopicId
    state: RangeState
    limits: RangeLimits
    log_start: Offset = Offset(0)
    log_end: Offset = Offset(0)
    rows_start: Offset = Offset(0)
    row_count: int = 0
    stored_bytes: int = 0
    drop_at: int = NEVER
    head_time: int = 0
    head_size: int = 0
    open_nodes: OpenNodes = ()
