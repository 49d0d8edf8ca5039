/* What a broker in C costs that does nothing: the yardstick for the listener.
 *
 *   reference_broker PORT PARTITIONS
 *
 * A thread per connection. Parses Produce v3 to v7, checks each batch's CRC32C, answers, keeps nothing; knows just
 * enough of ApiVersions v3, Metadata v4 and InitProducerId v1 for librdkafka. Its one topic is "bench".
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nmmintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 64 << 20, ANSWER_MAX = 1 << 20, PRODUCE = 0, METADATA = 3, API_VERSIONS = 18, INIT_PRODUCER = 22 };

static int port, partitions;

static uint32_t crc32c(const unsigned char *p, size_t n) {
  uint64_t crc = 0xffffffff;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  while (n--) crc = _mm_crc32_u8(crc, *p++);
  return ~(uint32_t)crc;
}

static uint16_t get16(unsigned char **p) {
  uint16_t v;
  memcpy(&v, *p, 2);
  *p += 2;
  return ntohs(v);
}

static uint32_t get32(unsigned char **p) {
  uint32_t v;
  memcpy(&v, *p, 4);
  *p += 4;
  return ntohl(v);
}

static void put8(unsigned char **p, int v) { *(*p)++ = v; }

static void put16(unsigned char **p, int v) {
  uint16_t x = htons(v);
  memcpy(*p, &x, 2);
  *p += 2;
}

static void put32(unsigned char **p, uint32_t v) {
  v = htonl(v);
  memcpy(*p, &v, 4);
  *p += 4;
}

static void put64(unsigned char **p, uint64_t v) {
  put32(p, v >> 32);
  put32(p, v);
}

static void put_string(unsigned char **p, const char *s) {
  put16(p, strlen(s));
  memcpy(*p, s, strlen(s));
  *p += strlen(s);
}

static void answer_versions(unsigned char **out) {
  /* Fetch is never served, but librdkafka writes v2 batches only to brokers that offer it. */
  static const int served[5][3] = {{PRODUCE, 0, 7}, {1, 0, 11}, {METADATA, 0, 4}, {API_VERSIONS, 0, 3}, {INIT_PRODUCER, 0, 1}};
  put16(out, 0);
  put8(out, 6);
  for (int i = 0; i < 5; i++) {
    for (int k = 0; k < 3; k++) put16(out, served[i][k]);
    put8(out, 0);
  }
  put32(out, 0);
  put8(out, 0);
}

static void answer_metadata(unsigned char **out) {
  put32(out, 0);
  put32(out, 1);
  put32(out, 1);
  put_string(out, "127.0.0.1");
  put32(out, port);
  put16(out, -1);
  put_string(out, "reference");
  put32(out, 1);
  put32(out, 1);
  put16(out, 0);
  put_string(out, "bench");
  put8(out, 0);
  put32(out, partitions);
  for (int i = 0; i < partitions; i++) {
    put16(out, 0);
    put32(out, i);
    put32(out, 1);
    for (int k = 0; k < 2; k++) {
      put32(out, 1);
      put32(out, 1);
    }
  }
}

static void answer_produce(unsigned char *in, int version, unsigned char **out) {
  uint16_t transactional = get16(&in);
  if (transactional != 0xffff) in += transactional;
  in += 6;
  uint32_t topics = get32(&in);
  put32(out, topics);
  while (topics--) {
    uint16_t name = get16(&in);
    put16(out, name);
    memcpy(*out, in, name);
    *out += name;
    in += name;
    uint32_t count = get32(&in);
    put32(out, count);
    while (count--) {
      put32(out, get32(&in));
      uint32_t size = get32(&in), crc;
      memcpy(&crc, in + 17, 4);
      if (crc32c(in + 21, size - 21) != ntohl(crc)) exit(fprintf(stderr, "wrong CRC\n"));
      in += size;
      put16(out, 0);
      put64(out, 0);
      put64(out, -1);
      if (version >= 5) put64(out, 0);
    }
  }
  put32(out, 0);
}

static int handle(unsigned char *in, unsigned char *start) {
  unsigned char *out = start + 4;
  int key = get16(&in), version = get16(&in);
  put32(&out, get32(&in));
  uint16_t client = get16(&in);
  if (client != 0xffff) in += client;
  if (key == API_VERSIONS) answer_versions(&out);
  else if (key == METADATA) answer_metadata(&out);
  else if (key == PRODUCE) answer_produce(in, version, &out);
  else if (key == INIT_PRODUCER) {
    put32(&out, 0);
    put16(&out, 0);
    put64(&out, 1000);
    put16(&out, 0);
  } else return 0;
  int size = out - start;
  put32(&start, size - 4);
  return size;
}

static void *serve(void *argument) {
  int s = (int)(intptr_t)argument, one = 1;
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  unsigned char *request = malloc(REQUEST_MAX), *answer = malloc(ANSWER_MAX);
  uint32_t size;
  while (recv(s, &size, 4, MSG_WAITALL) == 4 && (size = ntohl(size)) <= REQUEST_MAX) {
    if (recv(s, request, size, MSG_WAITALL) != (ssize_t)size) break;
    int n = handle(request, answer);
    if (!n || send(s, answer, n, MSG_NOSIGNAL) != n) break;
  }
  close(s);
  free(request);
  free(answer);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  port = atoi(argv[1]);
  partitions = atoi(argv[2]);
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) return perror("bind"), 1;
  for (;;) {
    int s = accept(listener, NULL, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, serve, (void *)(intptr_t)s);
    pthread_detach(thread);
  }
}
