"""The directory shows what homes have published, and its version tells every change."""

from floe.metadata.directory import Directory
from floe.model.ids import RangeId, TopicId, VnodeId
from floe.model.topic import Topic

V0, V1 = VnodeId(0), VnodeId(1)


def topic(name, number=0, version=1):
    return Topic(name=name, id=TopicId(bytes([number]) * 16), ranges=(RangeId(number),), version=version)


def test_topics_are_listed_by_name():
    directory = Directory()
    assert directory.all() == ()
    directory.put(V0, topic("b", 1))
    directory.put(V1, topic("a", 2))
    assert [each.name for each in directory.all()] == ["a", "b"]
    assert directory.all() is directory.all()


def test_name_that_comes_back_with_another_id_forgets_the_first():
    directory = Directory()
    directory.put(V0, topic("a", 1))
    directory.put(V0, topic("a", 2))
    assert directory.by_id(topic("a", 1).id) is None
    assert directory.by_name("a") == directory.by_id(topic("a", 2).id) == topic("a", 2)


def test_replace_shows_exactly_what_a_home_has_and_leaves_other_homes_alone():
    directory = Directory()
    directory.put(V0, topic("a", 1))
    directory.put(V0, topic("b", 2))
    directory.put(V1, topic("c", 3))
    directory.replace(V0, [topic("b", 2, version=5), topic("d", 4)])
    assert [(each.name, each.version) for each in directory.all()] == [("b", 5), ("c", 1), ("d", 1)]
    assert directory.by_id(topic("a", 1).id) is None
    directory.replace(V1, [])
    assert [each.name for each in directory.all()] == ["b", "d"]


def test_version_rises_with_every_change_and_only_then():
    directory = Directory()
    versions = [directory.version]
    for change in (
        lambda: directory.put(V0, topic("a", 1)),
        lambda: directory.put(V0, topic("a", 1, version=2)),
        lambda: directory.replace(V0, [topic("a", 1, version=3)]),
        lambda: directory.remove(V0, "a"),
    ):
        change()
        versions.append(directory.version)
    assert versions == sorted(set(versions))
    directory.put(V0, topic("b", 2))
    before = directory.version
    directory.replace(V0, [topic("b", 2)])
    assert directory.version == before
