"""Apache Kafka from its Maven artifacts: newest release, KRaft, one node, default settings."""

import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.process import free_port, running, wait_for_port

BUILD = Path(__file__).parents[1] / ".build" / "kafka"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>floe</groupId><artifactId>yardstick</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>[4.0,)</version></dependency>
</dependencies></project>
"""
# What Kafka's own start script gives the JVM.
JVM = ["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
JVM += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def missing() -> str | None:
    """Why Kafka cannot run here, or None; fetches its artifacts the first time."""
    if not shutil.which("java"):
        return "no Java on this machine"
    if any((BUILD / "lib").glob("kafka_2.13-*.jar")):
        return None
    if not shutil.which("mvn"):
        return "no Maven on this machine"
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "pom.xml").write_text(POM)
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DoutputDirectory=lib",
        "-DincludeScope=runtime",
    ]
    done = subprocess.run(command, cwd=BUILD, capture_output=True, check=False)
    return "Maven Central was not reached" if done.returncode else None


def version() -> str:
    """The release that was fetched."""
    return next((BUILD / "lib").glob("kafka_2.13-*.jar")).stem.split("-", 1)[1]


@contextmanager
def apache_kafka(folder: Path) -> Iterator[tuple[int, int]]:
    """A running Kafka, on the data that is in the folder or a new one; yields its port and process id."""
    port, controller = free_port(), free_port()
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, data=folder / "data"))
    java = ["java", *JVM, "-cp", str(BUILD / "lib" / "*")]
    if not (folder / "data").exists():
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run([*java, *tool], check=True, capture_output=True)
    with running([*java, "kafka.Kafka", str(settings)], log=folder / "kafka.log") as process:
        wait_for_port(port, process)
        yield port, process.pid
