"""The closing rule, as traces (testdata/write_buffer) and as properties over random histories."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.machines.write_buffer import BufferLimits, WriteBuffer
from floe.testing.datadriven import Command, is_rewriting, run_file

TRACES = sorted((Path(__file__).parent / "testdata" / "write_buffer").glob("*.txt"))


class Trace:
    """Runs commands against one machine; all times are whole milliseconds, so that no sum is rounded."""

    def __init__(self) -> None:
        self.now = 0
        self.buffer: WriteBuffer

    def handle(self, command: Command) -> str:
        self.now += command.integer("after", 0)
        action = getattr(self, command.name)
        return action(command)

    def limits(self, command: Command) -> str:
        self.buffer = WriteBuffer(
            BufferLimits(
                uploads_eager=command.integer("eager"),
                uploads_max=command.integer("max"),
                min_interval=command.integer("min_ms"),
                commit_interval=command.integer("age_ms"),
                buffer_bytes_max=command.integer("bytes"),
                pending_bytes_max=command.integer("pending", 1 << 40),
            )
        )
        return self.state()

    def add(self, command: Command) -> str:
        size = command.integer("size")
        if not self.buffer.admits(size):
            return "refused, " + self.state()
        full = self.buffer.add(self.now, size)
        return ("full, " if full else "") + self.state()

    def close(self, _command: Command) -> str:
        due = self.buffer.due(self.now)
        if due is None or due > self.now:
            return "not yet, " + self.state()
        return f"closed {self.buffer.close(self.now)}, " + self.state()

    def ended(self, _command: Command) -> str:
        self.buffer.upload_ended()
        return self.state()

    def settled(self, command: Command) -> str:
        self.buffer.settle(command.integer("size"))
        return self.state()

    def state(self) -> str:
        due = self.buffer.due(self.now)
        when = "waits" if due is None else "due" if due <= self.now else f"due in {due - self.now} ms"
        return (
            f"{when}; buffered={self.buffer.buffered_count} uploads={self.buffer.uploads} "
            f"pending={self.buffer.pending_bytes}"
        )


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_write_buffer_follows_its_trace(path, request):
    run_file(path, Trace().handle, rewrite=is_rewriting(request.config))


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 60)),
        st.tuples(st.just("pass"), st.integers(1, 120)),
        st.tuples(st.just("ended"), st.just(0)),
    ),
    max_size=120,
)


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 3), st.integers(0, 2), st.sampled_from([0.0, 0.1]))
def test_every_request_leaves_once_in_order_and_within_the_bounds(events, eager, extra, min_interval):
    limits = BufferLimits(
        uploads_eager=eager,
        uploads_max=eager + extra,
        min_interval=min_interval,
        commit_interval=0.25,
        buffer_bytes_max=100,
        pending_bytes_max=1000,
    )
    buffer = WriteBuffer(limits)
    waiting: list[tuple[float, int]] = []
    now, added, settled = 0.0, 0, 0

    def advance():
        while (due := buffer.due(now)) is not None and due <= now:
            taken = [waiting.pop(0) for _ in range(buffer.close(now))]
            sizes = [size for _, size in taken]
            assert sum(sizes[:-1]) < limits.buffer_bytes_max
            under_way.append(sum(sizes))

    under_way: list[int] = []
    for kind, value in events:
        if kind == "add" and buffer.admits(value):
            buffer.add(now, value)
            waiting.append((now, value))
            added += value
        elif kind == "pass":
            now += value / 1000
        elif kind == "ended" and under_way:
            buffer.upload_ended()
            size = under_way.pop(0)
            buffer.settle(size)
            settled += size
        advance()
        assert buffer.uploads == len(under_way) <= limits.uploads_max
        assert buffer.buffered_count == len(waiting)
        assert buffer.pending_bytes == added - settled <= limits.pending_bytes_max
        if waiting and buffer.uploads < limits.uploads_max:
            assert now - waiting[0][0] < limits.commit_interval
            assert buffer.uploads >= eager or now - waiting[0][0] < max(min_interval, 1e-9)
    while waiting:
        now += 1
        if under_way and buffer.uploads == limits.uploads_max:
            buffer.upload_ended()
            under_way.pop(0)
        advance()
    assert buffer.buffered_count == 0
