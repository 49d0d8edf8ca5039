/* Load from librdkafka: consumes all partitions of a topic from the beginning, without a group.
 *
 *   consumer key=value ...   brokers=, topic=, partitions=, records=N to read, rdkafka.KEY=VALUE
 *
 * The clock starts at the first record. Prints one JSON object.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 1000, STALL_SECONDS = 30 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char error[512];
  if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
    fprintf(stderr, "%s\n", error);
    exit(2);
  }
}

int main(int argc, char **argv) {
  const char *topic_name = "bench";
  long records = 100000, partitions = 8;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "group.id", "bench");
  set(conf, "queued.max.messages.kbytes", "262144");
  set(conf, "fetch.wait.max.ms", "100");
  set(conf, "check.crcs", "false");
  for (int i = 1; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) return 2;
    *value++ = 0;
    if (!strcmp(argv[i], "brokers")) set(conf, "bootstrap.servers", value);
    else if (!strcmp(argv[i], "topic")) topic_name = value;
    else if (!strcmp(argv[i], "partitions")) partitions = atol(value);
    else if (!strcmp(argv[i], "records")) records = atol(value);
    else if (!strncmp(argv[i], "rdkafka.", 8)) set(conf, argv[i] + 8, value);
    else return 2;
  }
  char error[512];
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  if (!rk) return fprintf(stderr, "%s\n", error), 2;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name, NULL);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
  for (long p = 0; p < partitions; p++) rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue);

  rd_kafka_message_t *page[PAGE];
  long got = 0, errors = 0;
  double bytes = 0, started = 0, last = now();
  while (got < records && now() - last < STALL_SECONDS) {
    ssize_t count = rd_kafka_consume_batch_queue(queue, 1000, page, PAGE);
    for (ssize_t i = 0; i < count; i++) {
      if (page[i]->err) {
        if (page[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF && errors++ < 3)
          fprintf(stderr, "%s\n", rd_kafka_message_errstr(page[i]));
      } else {
        if (!started) started = now();
        got++;
        bytes += page[i]->len;
      }
      rd_kafka_message_destroy(page[i]);
    }
    if (count > 0) last = now();
  }
  double seconds = now() - started;
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  double cpu = u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6;
  printf("{\"records\": %ld, \"seconds\": %.3f, \"records_per_s\": %.1f, \"mb_per_s\": %.2f, \"client_cores\": %.2f}\n",
         got, seconds, got / seconds, bytes / seconds / 1e6, cpu / seconds);
  fflush(stdout);
  _exit(got < records); /* Closing a consumer takes seconds and measures nothing. */
}
