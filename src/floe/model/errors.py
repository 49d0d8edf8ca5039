"""Everything Floe raises, by what the receiver must do about it.

    FloeError
      Rejected      the caller must change the request; carries a Kafka error code
      Unavailable   the same request may work later
      Fenced        this process must stop acting in the role that was fenced
      Corrupt       stored or received bytes are wrong
      Internal      a bug of ours

Expected outcomes of single items in a batch call (unknown topic, duplicate sequence) are results
that carry an `ErrorCode`, not exceptions.
"""

from floe.model.error_codes import ErrorCode


class FloeError(Exception):
    """Base of every error of this package; `code` is what a Kafka client is told."""

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR


class Rejected(FloeError):
    """The request can never succeed as it is."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class Unavailable(FloeError):
    """The request did not succeed now; its outcome may be unknown."""

    code = ErrorCode.REQUEST_TIMED_OUT


class Fenced(FloeError):
    """A newer leader, term or epoch exists; whoever gets this must stop acting."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Corrupt(FloeError):
    """Bytes do not hold what their checksums or lengths say."""

    code = ErrorCode.CORRUPT_MESSAGE


class Internal(FloeError):
    """An impossible state: a bug."""
