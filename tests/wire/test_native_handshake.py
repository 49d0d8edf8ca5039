"""The handshake: both sides prove the secret, versions are agreed, and liars are told or left."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.native.frames import Kind
from floe.wire.native.handshake import MESSAGE_SIZE_MAX, NONCE_SIZE, ClientHandshake, ServerHandshake

SECRET = b"a secret of the cluster"
SERVER_NONCE, CLIENT_NONCE = b"s" * NONCE_SIZE, b"c" * NONCE_SIZE


def server(secret=SECRET, **options):
    return ServerHandshake(secret, SERVER_NONCE, **options)


def client(secret=SECRET, **options):
    return ClientHandshake(secret, CLIENT_NONCE, **options)


def shake(server, client):
    """Run both sides against each other as far as they go."""
    answer = server.receive(client.receive(server.greeting))
    if answer:
        assert client.receive(answer) == b""


def test_both_sides_end_up_with_keys_that_fit():
    one, other = server(), client()
    shake(one, other)
    assert one.session.version == other.session.version == 1
    to_client = one.session.encoder().encode(Kind.RESPONSE, 1, 9, b"hello")
    to_server = other.session.encoder().encode(Kind.REQUEST, 1, 9, b"hello")
    assert [frame.payload for frame in other.session.decoder().feed(to_client)] == [b"hello"]
    assert [frame.payload for frame in one.session.decoder().feed(to_server)] == [b"hello"]


def test_a_frame_cannot_be_sent_back_to_its_sender():
    one, other = server(), client()
    shake(one, other)
    decoder = one.session.decoder()
    assert decoder.feed(one.session.encoder().encode(Kind.REQUEST, 1, 1, b"")) == []
    assert isinstance(decoder.failure, Corrupt)


def test_another_handshake_has_other_keys():
    one, other = server(), client()
    shake(one, other)
    later = ServerHandshake(SECRET, b"t" * NONCE_SIZE)
    shake(later, client())
    decoder = later.session.decoder()
    decoder.feed(other.session.encoder().encode(Kind.REQUEST, 1, 1, b""))
    assert isinstance(decoder.failure, Corrupt)


def test_a_client_without_the_secret_is_refused_and_told():
    one, other = server(), client(secret=b"another secret, long enough")
    shake(one, other)
    assert one.session is None
    assert other.session is None
    for failure in (one.failure, other.failure):
        assert isinstance(failure, Rejected)
        assert failure.code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_server_without_the_secret_is_not_believed():
    impostor, other = server(secret=b"another secret, long enough"), client()
    hello = other.receive(impostor.greeting)
    assert hello
    other.receive(struct.pack(">HB", 33, 0) + bytes(32))
    assert other.session is None
    assert other.failure.code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_proof_cannot_be_sent_back():
    """The client's own proof, reflected, is not the server's."""
    other = client()
    hello = other.receive(server().greeting)
    other.receive(struct.pack(">HB", 33, 0) + hello[-32:])
    assert other.session is None


def test_a_hello_cannot_be_used_again():
    hello = client().receive(server().greeting)
    later = ServerHandshake(SECRET, b"t" * NONCE_SIZE)
    later.receive(hello)
    assert later.failure.code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_newest_common_version_is_taken():
    one, other = server(versions=(2, 5)), client(versions=(1, 4))
    shake(one, other)
    assert one.session.version == other.session.version == 4


@pytest.mark.parametrize(("theirs", "ours"), [((1, 2), (3, 4)), ((3, 4), (1, 2))])
def test_without_a_common_version_the_client_says_so(theirs, ours):
    one, other = server(versions=theirs), client(versions=ours)
    assert other.receive(one.greeting) == b""
    assert other.failure.code == ErrorCode.UNSUPPORTED_VERSION
    assert "versions" in str(other.failure)


def test_a_hello_of_another_version_is_answered_with_what_is_spoken():
    one, other = server(), client(versions=(7, 7))
    greeting = bytearray(one.greeting)
    struct.pack_into(">HH", greeting, 6, 7, 7)  # somebody in between claims that the broker speaks 7
    answer = one.receive(other.receive(greeting))
    assert one.failure.code == ErrorCode.UNSUPPORTED_VERSION
    other.receive(answer)
    assert other.failure.code == ErrorCode.UNSUPPORTED_VERSION
    assert str(other.failure) == "this broker speaks versions 1 to 1 of the native protocol, not 7"


def test_a_greeting_changed_on_the_way_fails_the_proof():
    one, other = server(versions=(1, 3)), client(versions=(1, 3))
    greeting = bytearray(one.greeting)
    struct.pack_into(">HH", greeting, 6, 1, 1)  # a downgrade
    one.receive(other.receive(greeting))
    assert one.failure.code == ErrorCode.SASL_AUTHENTICATION_FAILED


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_split_of_the_bytes_gives_the_same_outcome(data):
    one, other = server(), client()

    def feed(side, stream):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
        ends = zip([0, *cuts], [*cuts, len(stream)], strict=True)
        return b"".join(side.receive(stream[start:end]) for start, end in ends if side.session is None)

    hello = feed(other, one.greeting)
    welcome = feed(one, hello)
    feed(other, welcome)
    assert one.session is not None
    assert other.session is not None


def test_frames_sent_right_behind_the_hello_are_kept():
    one, other = server(), client()
    hello = other.receive(one.greeting)
    one.receive(hello + b"first bytes of a frame")
    assert one.leftover == b"first bytes of a frame"


def test_messages_have_a_small_bound_before_anything_is_proved():
    one, other = server(), client()
    one.receive(struct.pack(">H", MESSAGE_SIZE_MAX + 1))
    other.receive(struct.pack(">H", 0xFFFF))
    assert isinstance(one.failure, Corrupt)
    assert isinstance(other.failure, Corrupt)
    with pytest.raises(Corrupt):
        one.receive(b"more")


@given(noise=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_noise_never_opens_a_session(noise):
    for side in (server(), client()):
        side.receive(struct.pack(">H", len(noise)) + noise)
        assert side.session is None
        assert side.failure is not None


def test_an_unknown_code_in_a_refusal_is_taken_as_unknown():
    other = client()
    other.receive(server().greeting)
    other.receive(struct.pack(">HBh", 5, 1, 31000) + b"\xff!")
    assert other.failure.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_short_secrets_are_a_bug():
    with pytest.raises(AssertionError):
        ServerHandshake(b"short", SERVER_NONCE)


def test_keys_and_secrets_are_not_shown():
    one, other = server(), client()
    shake(one, other)
    for value in (one, one.session, other.session):
        assert "secret" not in repr(value)
        assert "key" not in repr(value)
