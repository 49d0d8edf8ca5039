"""Frames come out the same however their bytes are cut, within the budget."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.kafka.frame_memory import frame_memory
from floe.kafka.memory_budget import MemoryBudget
from floe.kafka.receiver import OWN_MEMORY_MIN, SCRATCH_BYTES, Receiver

SCRATCH = memoryview(bytearray(SCRATCH_BYTES))
ZEROS = bytes(SCRATCH_BYTES)


class Flow(asyncio.Transport):
    """Remembers whether reading is paused."""

    is_paused = False

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False


class Taker(Receiver):
    """Keeps frames until told to let go; is full at a number of them."""

    def __init__(self, budget, *, room=1 << 30, limit=1 << 20):
        super().__init__(scratch=SCRATCH, budget=budget, frame_bytes_max=limit)
        self.transport = Flow()
        self.frames = []
        self.kept = 0
        self.room = room
        self.refused = ""

    def frame_received(self, frame, size):
        assert len(frame) == size
        self.frames.append(bytes(frame))
        self.kept += 1
        self.is_full = self.kept >= self.room

    def refuse(self, reason, **_facts):
        self.refused = reason
        self.stop_receiving()

    def let_go(self):
        for frame in self.frames[-self.kept :] if self.kept else []:
            self._budget.give_back(len(frame))
        self.kept = 0
        self.is_full = False
        self.read_on()


def feed(receiver, data):
    """Give as many bytes as one read takes; what was not taken."""
    buffer = receiver.get_buffer(-1)
    assert len(buffer) > 0
    size = min(len(buffer), len(data))
    buffer[:size] = data[:size]
    receiver.buffer_updated(size)
    SCRATCH[:] = ZEROS  # whatever is still needed must not lie in the scratch
    return data[size:]


def framed(frames):
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


sizes = st.one_of(
    st.integers(0, 100),
    st.integers(OWN_MEMORY_MIN - 5, OWN_MEMORY_MIN + 5),
    st.integers(SCRATCH_BYTES - 8, SCRATCH_BYTES + 8),
    st.integers(0, 300_000),
)
frame_lists = st.lists(
    st.builds(lambda size, fill: bytes([fill]) * size, sizes, st.integers(1, 255)), min_size=1, max_size=8
)


@settings(deadline=None, max_examples=60)
@given(frame_lists, st.randoms(use_true_random=False), st.sampled_from([1, 100, 20_000, 200_000]))
def test_frames_are_the_same_however_the_bytes_are_cut(frames, rng, largest):
    receiver = Taker(MemoryBudget(1 << 30))
    stream = memoryview(framed(frames))
    largest = max(largest, len(stream) // 200)
    while stream:
        size = rng.randint(1, largest)
        part, stream = stream[:size], stream[size:]
        while part:
            part = feed(receiver, part)
    assert receiver.frames == frames
    assert not receiver.is_receiving


@settings(deadline=None)
@given(frame_lists, st.integers(1, 3), st.integers(1, 400_000))
def test_full_receiver_stops_and_goes_on_where_it_was(frames, room, limit):
    async def run():
        budget = MemoryBudget(limit)
        receiver = Taker(budget, room=room)
        stream = memoryview(framed(frames))
        for _ in range(2000):
            if len(receiver.frames) == len(frames):
                break
            if stream and not receiver.transport.is_paused:
                stream = feed(receiver, stream)
            else:
                receiver.let_go()
                await asyncio.sleep(0)
            assert budget.held <= max(limit + SCRATCH_BYTES, max(map(len, frames)) + SCRATCH_BYTES)
        assert receiver.frames == frames
        receiver.let_go()
        assert budget.held == 0

    asyncio.run(run())


def test_bad_length_is_refused_before_anything_is_allocated():
    for length in (-1, (1 << 20) + 1, 0x7FFFFFFF):
        budget = MemoryBudget(1 << 30)
        receiver = Taker(budget)
        feed(receiver, framed([b"good"]) + length.to_bytes(4, "big", signed=True) + b"x")
        assert receiver.frames == [b"good"]
        assert receiver.refused == "frame length"
        assert budget.held == 4


def test_frame_memory_is_writable_and_of_the_size_asked_for():
    for size in (0, 1, (64 << 10) - 1, 64 << 10, 1 << 20):
        view = frame_memory(size)
        assert len(view) == size
        view[:] = b"x" * size
