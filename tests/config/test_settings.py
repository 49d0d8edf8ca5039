"""Settings: sources, precedence, units, errors in words, and the reference page."""

from pathlib import Path

import pytest

from floe.config.address import Address
from floe.config.errors import SettingsError
from floe.config.load import load_settings
from floe.config.reference import page
from floe.config.settings import KEYS, Settings
from floe.config.sources import variable

ROOT = Path(__file__).parents[2]


def load(tmp_path, *, toml=None, **options):
    if toml is not None:
        (tmp_path / "floe.toml").write_text(toml)
    return load_settings(folder=tmp_path, **options)


def refused(tmp_path, **options):
    with pytest.raises(SettingsError) as error:
        load(tmp_path, **options)
    return str(error.value), error.value.hint


def test_defaults_need_nothing(tmp_path):
    settings, sources = load(tmp_path)
    assert sources == {}
    assert settings.listeners.kafka == Address("127.0.0.1", 9092)
    assert settings.topics.partitions == 1
    assert settings.objects_url.startswith("file:///")


def test_flags_win_over_the_environment_over_the_file_over_defaults(tmp_path):
    toml = "num.partitions = 2\nnode.id = 2\nmax.connections = 2\n[shutdown]\ndrain.ms = 2"
    environment = {"FLOE_NUM_PARTITIONS": "3", "FLOE_NODE_ID": "3", "FLOE_MAX_CONNECTIONS": "3"}
    settings, sources = load(
        tmp_path,
        toml=toml,
        environment=environment,
        flags={"num.partitions": "4", "node.id": "4", "broker.rack": None},
        assignments=["num.partitions=5"],
    )
    assert settings.topics.partitions == 5
    assert settings.broker.node_id == 4
    assert settings.sockets.connections_max == 3
    assert settings.broker.drain_ms == 2
    assert settings.broker.rack is None
    assert sources == {
        "num.partitions": "-X",
        "node.id": "a flag",
        "max.connections": "FLOE_MAX_CONNECTIONS",
        "shutdown.drain.ms": str(tmp_path / "floe.toml"),
    }


@pytest.mark.parametrize(
    "toml",
    [
        'produce.commit.interval.ms = "1s"',
        '[produce]\ncommit.interval.ms = "1s"',
        "[produce.commit]\ninterval.ms = 1000",
        '"produce.commit.interval.ms" = 1000',
    ],
)
def test_tables_and_dotted_keys_are_the_same(tmp_path, toml):
    settings, _ = load(tmp_path, toml=toml)
    assert settings.produce.commit_interval_ms == 1000


def test_file_is_named_by_the_flag_or_the_environment(tmp_path):
    other = tmp_path / "other.toml"
    other.write_text("num.partitions = 9")
    settings, _ = load(tmp_path, toml="num.partitions = 2", config=str(other))
    assert settings.topics.partitions == 9
    settings, _ = load(tmp_path, environment={"FLOE_CONFIG": str(other)})
    assert settings.topics.partitions == 9


@pytest.mark.parametrize(
    ("written", "value"),
    [("1048588", 1048588), ("2MiB", 2 << 20), ("2 MiB", 2 << 20), ("3mb", 3_000_000), ("1.5MiB", 1_572_864)],
)
def test_sizes_have_units(tmp_path, written, value):
    settings, _ = load(tmp_path, assignments=[f"message.max.bytes={written}"])
    assert settings.topics.message_bytes_max == value


@pytest.mark.parametrize(
    ("written", "value"),
    [("5", 5), ("5ms", 5), ("2s", 2000), ("3m", 180_000), ("7d", 604_800_000), ("-1", -1)],
)
def test_times_have_units(tmp_path, written, value):
    settings, _ = load(tmp_path, assignments=[f"log.retention.ms={written}"])
    assert settings.topics.retention_ms == value


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("localhost:1", Address("localhost", 1)),
        (":9092", Address("0.0.0.0", 9092)),
        ("PLAINTEXT://host:2", Address("host", 2)),
        ("[::1]:3", Address("::1", 3)),
    ],
)
def test_addresses(tmp_path, written, address):
    settings, _ = load(tmp_path, flags={"listeners": written})
    assert settings.listeners.kafka == address


@pytest.mark.parametrize("written", ["off", "none", ""])
def test_listeners_can_be_turned_off(tmp_path, written):
    settings, _ = load(tmp_path, flags={"http.listen": written})
    assert settings.listeners.http is None


def test_unknown_key_names_the_nearest(tmp_path):
    problem, hint = refused(tmp_path, assignments=["num.partition=3"])
    assert problem == "unknown setting num.partition (from -X)"
    assert hint == "did you mean num.partitions?"
    problem, hint = refused(tmp_path, toml="[produce]\ncommit.intervall.ms = 5")
    assert "produce.commit.intervall.ms" in problem
    assert "floe.toml" in problem
    assert hint == "did you mean produce.commit.interval.ms?"


def test_unknown_variables_are_left_alone(tmp_path):
    settings, sources = load(tmp_path, environment={"FLOE_PORT": "tcp://10.0.0.1:9092", "FLOE_X": "1"})
    assert sources == {}
    assert settings == Settings()


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("num.partitions=0", "greater than or equal to 1"),
        ("num.partitions=many", "integer"),
        ("message.max.bytes=2 parsecs", "64KiB, 8MiB or 1GB"),
        ("log.retention.ms=soon", "250ms"),
        ("listeners=host", "HOST:PORT"),
        ("listeners=host:99999", "HOST:PORT"),
        ("listeners=SSL://host:1", "PLAINTEXT"),
        ("listeners=a:1,b:2", "one is available"),
        ("metadata.store=raft", "'local' or 'memory'"),
        ("logging.level=loud", "'debug', 'info'"),
    ],
)
def test_bad_values_name_the_key_the_source_and_the_reason(tmp_path, assignment, words):
    problem, hint = refused(tmp_path, assignments=[assignment])
    assert problem.startswith(f"{assignment.split('=')[0]} (from -X): ")
    assert words in problem
    assert hint


@pytest.mark.parametrize("assignment", ["novalue", "=5", ""])
def test_assignment_without_a_key_or_a_value(tmp_path, assignment):
    problem, _ = refused(tmp_path, assignments=[assignment])
    assert "KEY=VALUE" in problem


def test_settings_that_contradict_each_other_are_both_named(tmp_path):
    problem, _ = refused(tmp_path, assignments=["message.max.bytes=200MiB"])
    assert "message.max.bytes" in problem
    assert "socket.request.max.bytes" in problem
    problem, _ = refused(tmp_path, assignments=["socket.request.max.bytes=300MiB"])
    assert "queued.max.request.bytes" in problem


def test_file_that_cannot_be_read_is_named(tmp_path):
    problem, _ = refused(tmp_path, config=str(tmp_path / "missing.toml"))
    assert "missing.toml" in problem
    problem, hint = refused(tmp_path, toml="store.url = s3://bucket")
    assert "not TOML" in problem
    assert "quotes" in hint
    (tmp_path / "floe.toml").write_bytes(b"\xff\xfe\x00")
    problem, _ = refused(tmp_path)
    assert "not a text file" in problem


def test_every_key_has_a_variable_of_its_own_and_a_description():
    variables = [variable(key) for key in KEYS]
    assert len(set(variables)) == len(variables)
    for key, (_, _, info) in KEYS.items():
        assert info.description, key
        assert info.description.endswith("."), key


def test_keys_never_stand_in_each_other_s_way():
    """A key that is the beginning of another could not be written in TOML."""
    assert [
        (key, other) for key in KEYS for other in KEYS if other.startswith(f"{key}.") and other != key
    ] == []


def test_reference_page_is_current():
    assert (ROOT / "docs" / "reference" / "settings.md").read_text() == page()
