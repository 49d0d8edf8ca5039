"""A broker's view of all topics: what the vnodes have published, by name and by id, in memory.

Each vnode publishes the topics it is home to, in the order of its transactions and only when they are
durable and shown to clients; a new leader's first publication replaces all that its vnode had said before.
"""

from collections.abc import Iterable, Sequence

from floe.model.ids import TopicId, VnodeId
from floe.model.topic import Topic


class Directory:
    """Implements `metadata.api.TopicDirectory`."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[TopicId, Topic] = {}
        self._names: dict[VnodeId, set[str]] = {}
        self._sorted: tuple[Topic, ...] | None = ()
        self._version = 0

    @property
    def version(self) -> int:
        return self._version

    def by_name(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: TopicId) -> Topic | None:
        return self._by_id.get(topic_id)

    def all(self) -> Sequence[Topic]:
        if self._sorted is None:
            self._sorted = tuple(self._by_name[name] for name in sorted(self._by_name))
        return self._sorted

    def put(self, home: VnodeId, topic: Topic) -> None:
        """Show a topic, or its newest state."""
        self._drop(home, topic.name)
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        self._names.setdefault(home, set()).add(topic.name)
        self._changed()

    def remove(self, home: VnodeId, name: str) -> None:
        self._drop(home, name)
        self._changed()

    def replace(self, home: VnodeId, topics: Iterable[Topic]) -> None:
        """Show exactly these topics of a home."""
        shown = {topic.name: topic for topic in topics}
        if shown == {name: self._by_name[name] for name in self._names.get(home, ())}:
            return
        for name in list(self._names.get(home, ())):
            self._drop(home, name)
        for topic in shown.values():
            self.put(home, topic)
        self._changed()

    def _drop(self, home: VnodeId, name: str) -> None:
        topic = self._by_name.pop(name, None)
        if topic is not None:
            self._by_id.pop(topic.id, None)
            self._names[home].discard(name)

    def _changed(self) -> None:
        self._version += 1
        self._sorted = None
