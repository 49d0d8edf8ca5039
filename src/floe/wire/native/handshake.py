"""The handshake: both sides prove that they know the cluster's secret, and neither says it.

    server -> client   greeting   magic, oldest and newest version, server nonce
    client -> server   hello      magic, version, client nonce, client proof
    server -> client   welcome    server proof          or  refusal   code, sentence

Each message is a u16 size and that many bytes; the greeting's shape holds for all versions to come. A
proof is HMAC-SHA256 under the secret over a label of its side and the transcript: the greeting and the
hello up to its proof. Labels differ, so no proof can be sent back; the transcript holds both nonces and the
version, so none can be repeated or moved to another version. The client proves first: whoever merely
connects to a broker learns nothing to try secrets against.

Session keys, one per direction, are HMAC-SHA256 under the secret over their own labels and the transcript.

Sans I/O: nonces come in as arguments and must be fresh random bytes.
"""

import hmac
from struct import Struct

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected
from floe.wire.native.frames import FRAME_SIZE_MAX, NativeDecoder, NativeEncoder

VERSIONS = (1, 1)  # oldest and newest that this side speaks
NONCE_SIZE = 32
PROOF_SIZE = 32
SECRET_SIZE_MIN = 16
MAGIC = b"FLOE"
MESSAGE_SIZE_MAX = 1024  # before a peer has proved anything it can make this side hold no more

_SIZE = Struct(">H")
_GREETING = Struct(">4sHH32s")
_HELLO_START = Struct(">4sH32s")
_WELCOME = 0
_REFUSAL = 1
_REFUSAL_START = Struct(">Bh")

_CLIENT_PROOF = b"floe native client proof\n"
_SERVER_PROOF = b"floe native server proof\n"
_CLIENT_KEY = b"floe native client to server key\n"
_SERVER_KEY = b"floe native server to client key\n"


class Session:
    """What a finished handshake leaves: the version both speak and a key per direction."""

    __slots__ = ("_receive_key", "_send_key", "version")

    def __init__(self, version: int, send_key: bytes, receive_key: bytes) -> None:
        self.version = version
        self._send_key = send_key
        self._receive_key = receive_key

    def encoder(self, frame_size_max: int = FRAME_SIZE_MAX) -> NativeEncoder:
        """The one sender of this session."""
        return NativeEncoder(self._send_key, frame_size_max=frame_size_max)

    def decoder(self, frame_size_max: int = FRAME_SIZE_MAX) -> NativeDecoder:
        """The one receiver of this session; feed it the handshake's `leftover` first."""
        return NativeDecoder(self._receive_key, frame_size_max=frame_size_max)


class _Handshake:
    """What both sides share: one message at a time, then a session or a failure.

    The driver sends what `receive` returns, even when `failure` is set, which then holds the reason to
    close. Once `session` is set, `leftover` holds the bytes that belong to the first frames.
    """

    def __init__(self, secret: bytes, nonce: bytes, versions: tuple[int, int]) -> None:
        assert len(secret) >= SECRET_SIZE_MIN, f"a secret has at least {SECRET_SIZE_MIN} bytes"
        assert len(nonce) == NONCE_SIZE
        self._secret = secret
        self._nonce = nonce
        self._oldest, self._newest = versions
        self._buffer = bytearray()
        self.session: Session | None = None
        self.failure: FloeError | None = None

    @property
    def leftover(self) -> bytes:
        return bytes(self._buffer)

    def _take(self, data: bytes | bytearray | memoryview) -> bytes | None:
        """The one message this side waits for, once it is complete."""
        if self.failure is not None:
            raise self.failure
        assert self.session is None, "the handshake is over"
        self._buffer += data
        if len(self._buffer) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(self._buffer)
        if size > MESSAGE_SIZE_MAX:
            self._fail(Corrupt(f"handshake message of {size} bytes"))
            return None
        end = _SIZE.size + size
        if len(self._buffer) < end:
            return None
        message = bytes(self._buffer[_SIZE.size : end])
        del self._buffer[:end]
        return message

    def _fail(self, error: FloeError) -> None:
        self.failure = error
        self._buffer.clear()

    def _sign(self, label: bytes, transcript: bytes) -> bytes:
        return hmac.digest(self._secret, label + transcript, "sha256")


class ServerHandshake(_Handshake):
    """The broker's side: send `greeting` on connect, then feed `receive`."""

    def __init__(self, secret: bytes, nonce: bytes, versions: tuple[int, int] = VERSIONS) -> None:
        super().__init__(secret, nonce, versions)
        self._greeting = _GREETING.pack(MAGIC, self._oldest, self._newest, nonce)

    @property
    def greeting(self) -> bytes:
        return _message(self._greeting)

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Bytes to send; welcome or refusal once the hello is complete."""
        hello = self._take(data)
        if hello is None:
            return b""
        if len(hello) != _HELLO_START.size + PROOF_SIZE or hello[:4] != MAGIC:
            return self._refuse(ErrorCode.INVALID_REQUEST, "this is Floe's native port; the hello is not one")
        start, proof = hello[:-PROOF_SIZE], hello[-PROOF_SIZE:]
        _, version, _ = _HELLO_START.unpack(start)
        if not self._oldest <= version <= self._newest:
            spoken = f"versions {self._oldest} to {self._newest} of the native protocol"
            return self._refuse(ErrorCode.UNSUPPORTED_VERSION, f"this broker speaks {spoken}, not {version}")
        transcript = self._greeting + start
        if not hmac.compare_digest(self._sign(_CLIENT_PROOF, transcript), proof):
            return self._refuse(ErrorCode.SASL_AUTHENTICATION_FAILED, "the secret is not this cluster's")
        self.session = Session(
            version, self._sign(_SERVER_KEY, transcript), self._sign(_CLIENT_KEY, transcript)
        )
        return _message(bytes((_WELCOME,)) + self._sign(_SERVER_PROOF, transcript))

    def _refuse(self, code: ErrorCode, sentence: str) -> bytes:
        self._fail(Rejected(code, sentence))
        return _message(_REFUSAL_START.pack(_REFUSAL, code) + sentence.encode())


class ClientHandshake(_Handshake):
    """The caller's side: feed `receive` from the first byte on."""

    def __init__(self, secret: bytes, nonce: bytes, versions: tuple[int, int] = VERSIONS) -> None:
        super().__init__(secret, nonce, versions)
        self._transcript = b""
        self._version = 0

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Bytes to send; the hello once the greeting is complete."""
        message = self._take(data)
        if message is None:
            return b""
        if not self._transcript:
            return self._answer_greeting(message)
        self._finish(message)
        return b""

    def _answer_greeting(self, greeting: bytes) -> bytes:
        if len(greeting) != _GREETING.size or greeting[:4] != MAGIC:
            self._fail(Corrupt("the peer does not greet like a Floe broker's native port"))
            return b""
        _, oldest, newest, _ = _GREETING.unpack(greeting)
        self._version = min(self._newest, newest)
        if self._version < max(self._oldest, oldest):
            sentence = (
                f"the broker speaks versions {oldest} to {newest} of the native protocol, "
                f"this side {self._oldest} to {self._newest}"
            )
            self._fail(Rejected(ErrorCode.UNSUPPORTED_VERSION, sentence))
            return b""
        start = _HELLO_START.pack(MAGIC, self._version, self._nonce)
        self._transcript = greeting + start
        return _message(start + self._sign(_CLIENT_PROOF, self._transcript))

    def _finish(self, answer: bytes) -> None:
        if len(answer) >= _REFUSAL_START.size and answer[0] == _REFUSAL:
            self._fail(_refusal_of(answer))
            return
        if not hmac.compare_digest(bytes((_WELCOME,)) + self._sign(_SERVER_PROOF, self._transcript), answer):
            self._fail(Rejected(ErrorCode.SASL_AUTHENTICATION_FAILED, "the broker does not know the secret"))
            return
        send_key, receive_key = (self._sign(label, self._transcript) for label in (_CLIENT_KEY, _SERVER_KEY))
        self.session = Session(self._version, send_key, receive_key)


def _refusal_of(answer: bytes) -> Rejected:
    """A refusal comes from a peer that has proved nothing: its code is taken only if it is known."""
    _, number = _REFUSAL_START.unpack_from(answer)
    sentence = answer[_REFUSAL_START.size :].decode("utf-8", "replace")
    try:
        code = ErrorCode(number)
    except ValueError:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return Rejected(code, sentence)


def _message(body: bytes) -> bytes:
    assert len(body) <= MESSAGE_SIZE_MAX
    return _SIZE.pack(len(body)) + body
