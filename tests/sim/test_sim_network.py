"""The simulated network: order within a connection, back-pressure, resets, silence, killed peers."""

import asyncio
import random

import pytest

from floe.testing.sim_loop import SimLoop
from floe.testing.sim_network import SimNetwork
from floe.testing.sim_process import SimProcess
from floe.testing.sim_trace import Trace
from floe.testing.sim_transport import LinkConditions

PORT = 9092


class World:
    def __init__(self, conditions=None, seed=1):
        self.conditions = conditions or LinkConditions()
        self.loop = SimLoop(random.Random(seed))
        self.trace = Trace(self.loop.time)
        self.network = SimNetwork(self.loop, random.Random(seed), self.trace, lambda: self.conditions)

    def run(self, work):
        try:
            return self.loop.run(work, seconds=3600)
        finally:
            assert self.loop.unhandled == []
            self.loop.close()


class Collector(asyncio.Protocol):
    """Keeps what it receives."""

    def __init__(self):
        self.received = bytearray()
        self.sizes = []
        self.is_paused = False
        self.lost = asyncio.get_running_loop().create_future()
        self.ended = False

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        self.sizes.append(len(data))

    def eof_received(self):
        self.ended = True
        return False

    def pause_writing(self):
        self.is_paused = True

    def resume_writing(self):
        self.is_paused = False

    def connection_lost(self, exc):
        self.lost.set_result(exc)


class BufferedEcho(asyncio.BufferedProtocol):
    """Receives into small buffers of its own and sends everything back."""

    def __init__(self):
        self.buffer = bytearray(1000)
        self.lost = None

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, sizehint):
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes):
        self.transport.writelines([bytes(self.buffer[:nbytes])])

    def connection_lost(self, exc):
        self.lost = exc


async def connected(world, server_factory=Collector, client_factory=Collector):
    servers = []

    def factory():
        servers.append(server_factory())
        return servers[-1]

    server = await world.loop.create_server(factory, "127.0.0.1", PORT)
    _, client = await world.loop.create_connection(client_factory, "127.0.0.1", PORT)
    await asyncio.sleep(1)
    return server, servers[0], client


@pytest.mark.parametrize("tiny", [0.0, 0.9])
def test_bytes_come_back_whole_and_in_order(tiny):
    world = World(LinkConditions(tiny_chance=tiny, spike_chance=0.1))
    data = random.Random(3).randbytes(20_000)

    async def main():
        _, _, client = await connected(world, BufferedEcho)
        client.transport.write(data[:7])
        client.transport.writelines([data[7:100], memoryview(data)[100:]])
        await asyncio.sleep(600)
        return client

    client = world.run(main())
    assert client.received == data
    assert len(client.sizes) > (100 if tiny else 1)


def test_close_sends_what_was_written_and_then_the_end():
    world = World()

    async def main():
        _, server, client = await connected(world)
        client.transport.write(bytes(1_000_000))
        client.transport.close()
        await asyncio.sleep(10)
        return server, client

    server, client = world.run(main())
    assert len(server.received) == 1_000_000
    assert server.ended
    assert server.lost.result() is None
    assert client.lost.result() is None


def test_a_reader_that_pauses_makes_the_writer_pause():
    world = World(LinkConditions(window=10_000))

    async def main():
        _, server, client = await connected(world)
        server.transport.pause_reading()
        client.transport.write(bytes(200_000))
        await asyncio.sleep(10)
        stalled = (client.is_paused, len(server.received), client.transport.get_write_buffer_size())
        server.transport.resume_reading()
        await asyncio.sleep(10)
        return stalled, client.is_paused, len(server.received)

    stalled, paused_after, received = world.run(main())
    assert stalled == (True, 0, 190_000)
    assert not paused_after
    assert received == 200_000


def test_reset_reaches_both_ends():
    world = World()

    async def main():
        _, server, client = await connected(world)
        world.network.reset(world.network.connections()[0])
        return await server.lost, await client.lost, world.network.connections()

    first, second, left = world.run(main())
    assert isinstance(first, ConnectionResetError)
    assert isinstance(second, ConnectionResetError)
    assert left == []


def test_silence_tells_nobody():
    world = World()

    async def main():
        _, server, client = await connected(world)
        world.network.silence(world.network.connections()[0], down=False)
        client.transport.write(b"into the void")
        server.transport.write(b"still heard")
        await asyncio.sleep(100)
        return server, client

    server, client = world.run(main())
    assert server.received == b""
    assert client.received == b"still heard"
    assert not server.lost.done()
    assert not client.lost.done()


@pytest.mark.parametrize("silence", [0.0, 1.0])
def test_peers_of_a_killed_process_see_a_reset_or_nothing(silence):
    world = World()
    world.network.silence_chance = silence
    process = SimProcess("server")
    process.when_killed(lambda: world.network.kill(process))

    async def main():
        accepted = []

        def factory():
            accepted.append(Collector())
            return accepted[-1]

        await process.start(world.loop, world.loop.create_server(factory, "127.0.0.1", PORT), "serve")
        _, client = await world.loop.create_connection(Collector, "127.0.0.1", PORT)
        await asyncio.sleep(1)
        accepted[0].transport.write(b"last words")
        process.kill("test")
        client.transport.write(b"anyone there?")
        await asyncio.sleep(100)
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Collector, "127.0.0.1", PORT)
        await world.loop.create_server(Collector, "127.0.0.1", PORT)  # the address is free again
        return accepted[0], client

    server, client = world.run(main())
    assert server.received == b""
    assert not server.lost.done()
    assert client.received == (b"" if silence else b"last words")
    assert client.lost.done() == (not silence)


def test_writing_to_a_closed_end_brings_a_reset():
    world = World()

    async def main():
        _, server, client = await connected(world)
        server.transport.pause_reading()  # it will not see the end
        client.transport.close()
        await asyncio.sleep(1)
        server.transport.write(b"too late")
        return await server.lost

    assert isinstance(world.run(main()), ConnectionResetError)


def test_same_seed_same_trace():
    def run(seed):
        world = World(LinkConditions(tiny_chance=0.3, spike_chance=0.2), seed)

        async def main():
            _, _, client = await connected(world, BufferedEcho)
            client.transport.write(bytes(50_000))
            await asyncio.sleep(60)

        world.run(main())
        return world.trace.digest

    assert run(5) == run(5)
    assert run(5) != run(6)
