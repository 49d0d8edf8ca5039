"""What the object engine can be told; filled in by `floe.server` from the settings."""

from dataclasses import dataclass

from floe.machines.write_buffer import BufferLimits

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Bounds and habits of the object engine; sizes in bytes, times in milliseconds.

    The defaults suit a folder. Memory in the worst case is `pending_bytes_max` + `hot_cache_bytes` +
    `cold_cache_bytes` + (`hot_gets_max` + `cold_gets_max`) * `get_bytes_max`, besides answers being sent.
    """

    uploads_eager: int = 1  # below this many uploads under way a buffer closes at once
    uploads_max: int = 4
    commit_min_interval_ms: int = 0  # between closes: the knob for the bill of a cloud store
    commit_interval_ms: int = 250
    buffer_bytes_max: int = 8 * MIB
    pending_bytes_max: int = 512 * MIB  # appends beyond are refused; the front door stops reading long before
    produce_timeout_ms: int = 30_000  # after this an append is answered, whatever is not known yet
    commit_objects_max: int = 64  # objects that share one commit call
    commit_backoff_min_ms: int = 10  # before asking again for an unknown outcome; doubles
    commit_backoff_max_ms: int = 1_000
    id_grace_ms: int = 10_000  # ids of a bucket are used this long after its end
    leader_epoch: int = 0  # stamped into every batch; stable, since no partition ever changes its leader

    hot_cache_bytes: int = 256 * MIB
    cold_cache_bytes: int = 128 * MIB
    hot_age_ms: int = 30_000  # rows committed within this time are read into the hot cache
    coordinate_rows_max: int = 50_000
    hot_gets_max: int = 8  # under way at once
    cold_gets_max: int = 8
    get_bytes_max: int = 4 * MIB  # neighbouring rows share a GET up to this size
    get_gap_bytes_max: int = 128 * KIB  # and at most so many bytes in between are read along
    read_rows_max: int = 64  # rows of one range that one read asks the store for
    read_ahead_bytes: int = 4 * MIB  # per range and sequential reader far behind

    delete_interval_ms: int = 30_000  # between looks for objects to delete, when there were none
    delete_items_max: int = 4  # claimed at once

    @classmethod
    def for_files(cls) -> "EngineSettings":
        return cls()

    @classmethod
    def for_cloud(cls) -> "EngineSettings":
        """A store that bills each PUT and answers it in tens of milliseconds, many at a time."""
        return cls(
            uploads_eager=4,
            uploads_max=16,
            commit_min_interval_ms=100,
            hot_gets_max=32,
            cold_gets_max=16,
            read_ahead_bytes=8 * MIB,
            cold_cache_bytes=256 * MIB,
        )

    def buffer_limits(self) -> BufferLimits:
        return BufferLimits(
            uploads_eager=self.uploads_eager,
            uploads_max=self.uploads_max,
            min_interval=self.commit_min_interval_ms / 1000,
            commit_interval=self.commit_interval_ms / 1000,
            buffer_bytes_max=self.buffer_bytes_max,
            pending_bytes_max=self.pending_bytes_max,
        )
