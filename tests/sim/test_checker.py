"""The checker finds each anomaly in a hand-written history that has only that one, and none in good ones."""

import pytest

from floe.testing.checker import AnomalyKind, check_history, check_objects
from floe.testing.sim_history import Bound, BoundKind, FinalLog, History, Outcome, Poll, Send, Trim

P = ("events", 0)


class Told:
    """Builds a history; time passes by one with each operation."""

    def __init__(self):
        self.history = History()
        self.now = 0.0

    def tick(self):
        self.now += 1
        return self.now

    def send(self, values, base=None, *, outcome=None, producer="p1", gapless=True):
        outcome = outcome or (Outcome.OK if base is not None else Outcome.UNKNOWN)
        self.history.gapless[producer] = gapless
        send = Send(producer, P, tuple(values.split()), self.tick(), self.tick(), outcome, base)
        self.history.sends.append(send)
        return self

    def poll(self, position, *records, consumer="c1", continues=True):
        seen = tuple((int(o), v) for o, v in (record.split("=") for record in records))
        poll = Poll(consumer, P, position, seen, self.tick(), self.tick(), continues)
        self.history.polls.append(poll)
        return self

    def bound(self, kind, offset):
        self.history.bounds.append(Bound(kind, P, offset, self.tick(), self.tick()))
        return self

    def latest(self, offset):
        return self.bound(BoundKind.LATEST, offset)

    def earliest(self, offset):
        return self.bound(BoundKind.EARLIEST, offset)

    def trim(self, before, outcome=Outcome.OK):
        self.history.trims.append(Trim(P, before, self.tick(), self.tick(), outcome))
        return self

    def log(self, *values, start=0, end=None):
        records = tuple(enumerate(values, start))
        self.history.logs.append(FinalLog(P, start, start + len(values) if end is None else end, records))
        return self

    def kinds(self, **options):
        return {anomaly.kind for anomaly in check_history(self.history, **options)}


def test_a_good_history_has_no_anomaly():
    told = Told().send("a b", 0).latest(2).poll(0, "0=a", "1=b").send("c", 2).poll(2, "2=c").latest(3)
    told.send("d").trim(1).earliest(1).poll(3, "3=d").latest(4)
    assert told.log("b", "c", "d", start=1).kinds() == set()


def test_unknown_sends_may_or_may_not_be_there():
    assert Told().send("a", 0).send("b").log("a").kinds() == set()
    assert Told().send("a", 0).send("b").log("a", "b").kinds() == set()


def test_lost_write_acknowledged():
    assert Told().send("a", 0).send("b", 1).log("a").kinds() == {AnomalyKind.LOST_WRITE}


def test_lost_write_seen_by_a_reader_though_never_acknowledged():
    told = Told().send("a", 0).send("b").poll(1, "1=b", continues=False).log("a")
    assert told.kinds() == {AnomalyKind.LOST_WRITE}


def test_lost_write_replaced_by_another_value_is_a_mismatch_too():
    told = Told().send("a", 0).send("b", 0, producer="p2").log("b")
    assert told.kinds() == {
        AnomalyKind.LOST_WRITE,
        AnomalyKind.INCONSISTENT_OFFSET,
        AnomalyKind.OFFSET_MISMATCH,
    }


def test_trimmed_records_are_not_lost():
    assert Told().send("a b", 0).trim(1).log("b", start=1).kinds() == set()
    assert Told().send("a b", 0).trim(1, Outcome.UNKNOWN).log("b", start=1).kinds() == set()


def test_duplicate():
    assert Told().send("a", 0).log("a", "a").kinds() == {AnomalyKind.DUPLICATE}


def test_inconsistent_offset_over_time():
    told = Told().send("a").send("b", producer="p2").poll(0, "0=a").log("b", "a")
    assert told.kinds() == {AnomalyKind.INCONSISTENT_OFFSET, AnomalyKind.DUPLICATE}


def test_acknowledged_offset_mismatch():
    told = Told().send("a", 0).send("b", 2, producer="p2").log("a", "b")
    assert told.kinds() == {AnomalyKind.OFFSET_MISMATCH}


def test_phantom():
    assert Told().send("a", 0).log("a", "x").kinds() == {AnomalyKind.PHANTOM}


def test_failed_read():
    told = Told().send("a", outcome=Outcome.FAILED).log("a")
    assert told.kinds() == {AnomalyKind.FAILED_READ}


def test_poll_skip_between_polls():
    told = Told().send("a b c", 0).poll(0, "0=a").poll(1, "2=c").log("a", "b", "c")
    assert told.kinds() == {AnomalyKind.POLL_SKIP}


def test_poll_skip_within_a_poll():
    told = Told().send("a b c", 0).poll(0, "0=a", "2=c").log("a", "b", "c")
    assert told.kinds() == {AnomalyKind.POLL_SKIP}


def test_a_seek_may_land_further():
    told = Told().send("a b c", 0).poll(0, "0=a").poll(1, "2=c", continues=False).log("a", "b", "c")
    assert told.kinds() == set()


@pytest.mark.parametrize("second", [["0=a"], ["1=b", "0=a"]])
def test_nonmonotonic_poll(second):
    told = Told().send("a b", 0).poll(0, "0=a").poll(1, *second).log("a", "b")
    assert told.kinds() == {AnomalyKind.NONMONOTONIC_POLL}


def test_nonmonotonic_send():
    told = Told().send("a").send("b").log("b", "a")
    assert told.kinds() == {AnomalyKind.NONMONOTONIC_SEND}


def test_order_between_sessions_is_free():
    assert Told().send("a").send("b", producer="p2").log("b", "a").kinds() == set()


def test_sequence_gap_of_an_idempotent_session():
    assert Told().send("a", 0).send("b").send("c", 1).log("a", "c").kinds() == {AnomalyKind.SEQUENCE_GAP}
    assert Told().send("a").send("b", 0).log("b").kinds() == {AnomalyKind.SEQUENCE_GAP}


def test_a_plain_session_may_have_gaps():
    told = Told().send("a", 0, gapless=False).send("b", gapless=False).send("c", 1, gapless=False)
    assert told.log("a", "c").kinds() == set()


def test_a_gap_below_the_log_start_may_have_been_trimmed():
    told = Told().send("a", 0).send("b").send("c", 2).trim(2).log("c", start=2)
    assert told.kinds() == set()


def test_latest_going_back():
    told = Told().send("a").send("b").latest(2).latest(1).log("a", "b")
    assert told.kinds() == {AnomalyKind.BOUND_WENT_BACK}


def test_concurrent_questions_for_latest_may_differ():
    told = Told().send("a").send("b")
    told.history.bounds += [
        Bound(BoundKind.LATEST, P, 2, 10.0, 12.0),
        Bound(BoundKind.LATEST, P, 1, 11.0, 13.0),
    ]
    assert told.log("a", "b").kinds() == set()


def test_latest_below_an_acknowledged_record():
    assert Told().send("a", 0).latest(0).log("a").kinds() == {AnomalyKind.STALE_LATEST}


def test_latest_below_a_read_record():
    assert Told().send("a").poll(0, "0=a").latest(0).log("a").kinds() == {AnomalyKind.STALE_LATEST}


def test_earliest_going_back():
    told = Told().send("a b", 0).trim(2, Outcome.UNKNOWN).earliest(1).earliest(0).log("b", start=1)
    assert told.kinds() == {AnomalyKind.BOUND_WENT_BACK}


def test_earliest_below_an_answered_delete():
    told = Told().send("a b", 0).trim(1).earliest(0).log("b", start=1)
    assert told.kinds() == {AnomalyKind.BOUND_WENT_BACK}


def test_hole_in_the_middle_and_at_the_end():
    told = Told().send("a", 0).send("b", 2, producer="p2")
    told.history.logs.append(FinalLog(P, 0, 3, ((0, "a"), (2, "b"))))
    assert told.kinds() == {AnomalyKind.HOLE}
    assert Told().send("a", 0).log("a", end=2).kinds() == {AnomalyKind.HOLE}


def test_unasked_trim():
    told = Told().send("a b", 0).trim(1).log(start=2)
    assert told.kinds() == {AnomalyKind.UNASKED_TRIM}
    assert told.kinds(may_trim=True) == set()


def test_deleted_records_must_not_be_served():
    told = Told().send("a b", 0).trim(1).poll(0, "0=a", "1=b", continues=False).log("b", start=1)
    assert told.kinds() == {AnomalyKind.DELETED_READ}


def test_objects():
    found = check_objects({"a": "events-0", "b": "events-1"}, frozenset({"b", "c"}))
    assert [(anomaly.kind, anomaly.text.split(",")[0].split()[0]) for anomaly in found] == [
        (AnomalyKind.MISSING_OBJECT, "a"),
        (AnomalyKind.KEPT_OBJECT, "c"),
    ]


def test_reports_name_the_operations():
    told = Told().send("a", 0).send("b", 1).log("a")
    (anomaly,) = check_history(told.history)
    assert str(anomaly).splitlines() == [
        "LOST WRITE in events-0: b not in the final log [0, 1)",
        "    [3.000 .. 4.000] send b -> ok at 1",
    ]
