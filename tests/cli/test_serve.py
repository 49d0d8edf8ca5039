"""`floe` as a user meets it: help, errors in words, exit codes, signals."""

import signal
import socket
import subprocess

import pytest

from floe.testing.broker_process import BrokerProcess, floe_command, plain_environment


def floe(*arguments, cwd, **environment):
    return subprocess.run(
        [*floe_command(), *arguments],
        cwd=cwd,
        env={**plain_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def test_version(tmp_path):
    done = floe("version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "floe 0.1.0\n")


def test_help_lists_commands_and_flags(tmp_path):
    assert "serve" in floe("--help", cwd=tmp_path).stdout
    shown = floe("serve", "--help", cwd=tmp_path).stdout
    for flag in ("--listen", "--advertise", "--data", "--store", "--http", "--native", "--config", "-X"):
        assert flag in shown


@pytest.mark.parametrize("arguments", [["nonsense"], ["serve", "--nonsense"]])
def test_wrong_usage_is_exit_code_2(tmp_path, arguments):
    done = floe(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-X", "num.partition=3"], 2, ["unknown setting num.partition", "did you mean num.partitions?"]),
        (["--listen", "nowhere"], 2, ["listeners", "HOST:PORT"]),
        (["--store", "ftp://x"], 2, ["ftp"]),
        (["--config", "missing.toml"], 2, ["missing.toml"]),
        (["-X", "metadata.store=memory", "--store", "file:///tmp/x"], 2, ["metadata.store=memory"]),
        (["--listen", "192.0.2.1:0"], 3, ["cannot listen for Kafka clients", "--listen"]),
        (["--data", "/proc/nowhere"], 3, ["data folder", "--data"]),
        (["-X", "native.secret.file=missing"], 3, ["native secret", "missing"]),
    ],
)
def test_errors_are_a_sentence_and_a_hint(tmp_path, arguments, code, words):
    given = ["serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", "data", *arguments]
    done = floe(*given, cwd=tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 2
    for word in words:
        assert word in done.stderr


def test_banner_says_where_and_what_to_type_next(running):
    for word in (running.bootstrap, "kcat -b", "confluent_kafka", "/metrics", "Ctrl-C", "file:///"):
        assert word in running.output


def test_folder_in_use_is_told_with_the_holder(running, tmp_path):
    done = floe("serve", "--listen", "127.0.0.1:0", "--data", str(running.folder / "data"), cwd=tmp_path)
    assert done.returncode == 3
    assert "in use by another broker" in done.stderr
    assert str(running.process.pid) in done.stderr


def test_port_in_use_is_told(running, tmp_path):
    done = floe("serve", "--listen", running.bootstrap, "--data", "data", cwd=tmp_path)
    assert done.returncode == 3
    assert "the port is taken" in done.stderr


def test_default_http_port_gives_way_and_an_asked_for_one_does_not(tmp_path):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8080))
        except OSError:
            pass  # somebody else holds it, which is as good
        else:
            taken.listen()
        done = floe("serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:8080", cwd=tmp_path)
        assert done.returncode == 3
        assert "HTTP" in done.stderr
        command = [*floe_command(), "serve", "--listen", "127.0.0.1:0", "--data", "other"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=plain_environment(), stdout=subprocess.PIPE, text=True
        ) as process:
            lines = []
            while "Stop with" not in (line := process.stdout.readline()):
                lines.append(line)
            process.terminate()
            process.communicate(timeout=30)
            assert process.returncode == 0
    assert any("port 8080 is taken" in line for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_broker_cleanly(tmp_path, number):
    with BrokerProcess(tmp_path) as broker:
        assert broker.stop(number) == 0
        assert "stopped" in broker.output
        assert "Traceback" not in broker.output


def test_settings_come_from_file_environment_and_flags(tmp_path):
    (tmp_path / "floe.toml").write_text('num.partitions = 3\nnode.id = 7\nlogging.level = "warning"\n')
    with BrokerProcess(tmp_path, "-X", "node.id=8") as broker:
        from confluent_kafka.admin import AdminClient

        found = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20)
        assert list(found.brokers) == [8]
        assert "broker ready" not in broker.output
