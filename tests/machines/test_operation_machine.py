"""Steps happen in order, at every target, however often single attempts fail."""

from hypothesis import given
from hypothesis import strategies as st

from floe.machines.operation import Apply, Conclude, OperationMachine, Record, pause_ms


def machine(targets, step=0, parallel_max=16):
    return OperationMachine(
        step=step, step_count=len(targets), targets=lambda step: targets[step], parallel_max=parallel_max
    )


def test_steps_are_applied_recorded_and_concluded_in_order():
    m = machine([[3, 5], [7]])
    assert m.start() == [Apply(0, 3), Apply(0, 5)]
    assert m.applied(Apply(0, 5), is_done=True) == []
    assert m.applied(Apply(0, 3), is_done=True) == [Record(1)]
    assert m.recorded(Record(1)) == [Apply(1, 7)]
    assert m.applied(Apply(1, 7), is_done=True) == [Conclude()]
    m.concluded()
    assert m.is_over


def test_resumed_operation_begins_at_its_recorded_step():
    assert machine([[1], [2], [3]], step=1).start() == [Apply(1, 2)]


def test_step_without_targets_is_passed_over():
    m = machine([[], [], []])
    assert m.start() == [Record(1)]
    assert m.recorded(Record(1)) == [Record(2)]
    assert m.recorded(Record(2)) == [Conclude()]


def test_unfinished_target_is_asked_again_at_once_and_a_failed_one_after_a_pause():
    m = machine([[1]])
    m.start()
    assert m.applied(Apply(0, 1), is_done=False) == [Apply(0, 1)]
    assert m.failed(Apply(0, 1)) == [Apply(0, 1, 1)]
    assert m.failed(Apply(0, 1, 1)) == [Apply(0, 1, 2)]
    assert m.applied(Apply(0, 1, 2), is_done=False) == [Apply(0, 1)]
    assert m.applied(Apply(0, 1), is_done=True) == [Conclude()]
    assert m.failed(Conclude()) == [Conclude(1)]


def test_only_so_many_targets_at_a_time():
    m = machine([range(5)], parallel_max=2)
    assert m.start() == [Apply(0, 0), Apply(0, 1)]
    assert m.applied(Apply(0, 1), is_done=True) == [Apply(0, 2)]


def test_pauses_grow_and_are_bounded():
    pauses = [pause_ms(attempt) for attempt in range(100)]
    assert pauses[0] == 0
    assert pauses[1] < pauses[2] < pauses[3]
    assert max(pauses) == pauses[-1] == 5_000


@given(
    st.lists(st.lists(st.integers(0, 30), unique=True, max_size=6), min_size=1, max_size=5),
    st.integers(1, 4),
    st.data(),
)
def test_every_target_is_done_before_the_next_step_whatever_fails(targets, parallel_max, data):
    first = data.draw(st.integers(0, len(targets) - 1))
    m = machine(targets, step=first, parallel_max=parallel_max)
    todo, done, rounds = m.start(), set(), 0
    while todo:
        rounds += 1
        effect = todo.pop(data.draw(st.integers(0, len(todo) - 1)))
        outcome = data.draw(st.sampled_from(["ok", "more", "fail"])) if rounds < 100 else "ok"
        if isinstance(effect, Apply):
            assert all(
                (step, target) in done for step in range(first, effect.step) for target in targets[step]
            )
            assert len([each for each in todo if isinstance(each, Apply)]) < parallel_max
        else:
            assert not todo
        if outcome == "fail":
            todo += m.failed(effect)
        elif isinstance(effect, Apply):
            if outcome == "ok":
                done.add((effect.step, effect.target))
            todo += m.applied(effect, is_done=outcome == "ok")
        elif isinstance(effect, Record):
            todo += m.recorded(effect)
        else:
            m.concluded()
    assert m.is_over
    assert done == {(step, target) for step in range(first, len(targets)) for target in targets[step]}
