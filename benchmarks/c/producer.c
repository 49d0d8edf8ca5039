/* Load from librdkafka: produces records as fast as it can, or at a given rate, or one at a time.
 *
 *   producer key=value ...
 *     brokers=HOST:PORT topic=NAME partitions=N   where to
 *     records=N size=BYTES                        how much
 *     rate=N                                      records per second; 0 = as fast as possible
 *     sync=1                                      wait for each acknowledgement before the next record
 *     rdkafka.KEY=VALUE                           passed to librdkafka
 *
 * Prints one JSON object: rate, MB/s of record values, latency of acknowledgements, CPU of this process.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LATENCY_MAX = 1 << 20 };

static double *latencies;
static long latency_count, acked, failed, sample_every = 1;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu_seconds(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
  (void)rk;
  (void)opaque;
  if (message->err) {
    if (failed++ < 3) fprintf(stderr, "delivery failed: %s\n", rd_kafka_err2str(message->err));
    return;
  }
  if (acked++ % sample_every == 0 && latency_count < LATENCY_MAX)
    latencies[latency_count++] = rd_kafka_message_latency(message) / 1e3;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char error[512];
  if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
    fprintf(stderr, "%s\n", error);
    exit(2);
  }
}

static void wait_until(rd_kafka_t *rk, double due) {
  double left;
  while ((left = due - now()) > 0) rd_kafka_poll(rk, left > 0.002 ? 1 : 0);
}

int main(int argc, char **argv) {
  const char *topic_name = "bench";
  long records = 100000, partitions = 8, sync = 0;
  size_t size = 1024;
  double rate = 0;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "queue.buffering.max.messages", "2000000");
  set(conf, "queue.buffering.max.kbytes", "262144");
  set(conf, "batch.num.messages", "1000000");
  set(conf, "message.max.bytes", "8000000");
  set(conf, "socket.nagle.disable", "true");
  for (int i = 1; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) return 2;
    *value++ = 0;
    if (!strcmp(argv[i], "brokers")) set(conf, "bootstrap.servers", value);
    else if (!strcmp(argv[i], "topic")) topic_name = value;
    else if (!strcmp(argv[i], "partitions")) partitions = atol(value);
    else if (!strcmp(argv[i], "records")) records = atol(value);
    else if (!strcmp(argv[i], "size")) size = atol(value);
    else if (!strcmp(argv[i], "rate")) rate = atof(value);
    else if (!strcmp(argv[i], "sync")) sync = atol(value);
    else if (!strncmp(argv[i], "rdkafka.", 8)) set(conf, argv[i] + 8, value);
    else return 2;
  }
  rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  latencies = malloc(sizeof(double) * LATENCY_MAX);
  sample_every = records > LATENCY_MAX ? records / LATENCY_MAX + 1 : 1;

  char error[512];
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  if (!rk) return fprintf(stderr, "%s\n", error), 2;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name, NULL);
  const struct rd_kafka_metadata *metadata;
  if (rd_kafka_metadata(rk, 0, topic, &metadata, 30000)) return fprintf(stderr, "no metadata\n"), 2;
  rd_kafka_metadata_destroy(metadata);

  /* Words from a small vocabulary: compressible as logs are, not as zeros are. */
  enum { POOL = 1 << 16 };
  char *pool = malloc(POOL + size);
  srand(1);
  for (size_t i = 0; i < POOL + size;) {
    int word = rand() % 512, length = snprintf(NULL, 0, "field%d=%x ", word, word * 7919);
    char text[32];
    snprintf(text, sizeof text, "field%d=%x ", word, word * 7919);
    for (int k = 0; k < length && i < POOL + size; k++) pool[i++] = text[k];
  }

  double started = now(), cpu = cpu_seconds();
  for (long i = 0; i < records; i++) {
    if (rate > 0) wait_until(rk, started + i / rate);
    int partition = sync || rate > 0 ? i % partitions : (i / 256) % partitions;
    while (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, pool + (i * 97) % POOL, size, NULL, 0, NULL) == -1)
      rd_kafka_poll(rk, 5);
    if (sync) while (acked + failed <= i) rd_kafka_poll(rk, 100);
    else if ((i & 255) == 0) rd_kafka_poll(rk, 0);
  }
  rd_kafka_flush(rk, 120000);
  double seconds = now() - started;
  cpu = (cpu_seconds() - cpu) / seconds;
  qsort(latencies, latency_count, sizeof(double), ascending);
  double p50 = latency_count ? latencies[latency_count / 2] : -1;
  double p99 = latency_count ? latencies[(long)(latency_count * 0.99)] : -1;
  printf("{\"acked\": %ld, \"failed\": %ld, \"seconds\": %.3f, \"records_per_s\": %.1f, \"mb_per_s\": %.2f, "
         "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"client_cores\": %.2f}\n",
         acked, failed, seconds, acked / seconds, acked * (double)size / seconds / 1e6, p50, p99, cpu);
  return failed || acked != records;
}
