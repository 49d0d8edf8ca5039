/* Replays one prebuilt request over many connections; costs next to nothing itself.
 *
 *   replay PORT REQUEST_FILE CONNECTIONS IN_FLIGHT SECONDS
 *
 * The file holds a framed request; its correlation id (bytes 8 to 11) is replaced. One thread, epoll.
 * Prints one JSON object: requests per second and the latency of answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, IN_FLIGHT_MAX = 64, SAMPLES_MAX = 1 << 21, ANSWER_MAX = 1 << 20 };

typedef struct {
  int socket;
  unsigned next, answered;
  size_t sent, received; /* bytes of the request being sent, of the answer being read */
  int sending;
  unsigned char answer[8];
  size_t answer_size;
  double started[IN_FLIGHT_MAX];
} connection;

static unsigned char *request;
static size_t request_size;
static int in_flight;
static double *samples, deadline;
static long sample_count, total;
static int epoll;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void push(connection *c) {
  while (c->sending || (c->next - c->answered < (unsigned)in_flight && now() < deadline)) {
    if (!c->sending) {
      c->sending = 1;
      c->sent = 0;
      c->started[c->next % IN_FLIGHT_MAX] = now();
    }
    unsigned correlation = htonl(c->next);
    memcpy(request + 8, &correlation, 4);
    ssize_t n = send(c->socket, request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN) return;
      fail("send");
    }
    c->sent += n;
    if (c->sent == request_size) {
      c->sending = 0;
      c->next++;
    }
  }
}

static void pull(connection *c) {
  static unsigned char sink[ANSWER_MAX];
  for (;;) {
    size_t want = c->received < 8 ? 8 - c->received : c->answer_size - c->received;
    unsigned char *to = c->received < 8 ? c->answer + c->received : sink;
    ssize_t n = recv(c->socket, to, want < ANSWER_MAX ? want : ANSWER_MAX, 0);
    if (n == 0) fail("closed by the broker");
    if (n < 0) {
      if (errno == EAGAIN) return;
      fail("recv");
    }
    c->received += n;
    if (c->received == 8) {
      unsigned size, correlation;
      memcpy(&size, c->answer, 4);
      memcpy(&correlation, c->answer + 4, 4);
      c->answer_size = ntohl(size) + 4;
      if (ntohl(correlation) != c->answered) fail("answer out of order");
    }
    if (c->received >= 8 && c->received == c->answer_size) {
      if (sample_count < SAMPLES_MAX) samples[sample_count++] = now() - c->started[c->answered % IN_FLIGHT_MAX];
      c->answered++;
      c->received = 0;
      total++;
      push(c);
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: replay PORT FILE CONNECTIONS IN_FLIGHT SECONDS\n"), 2;
  FILE *file = fopen(argv[2], "rb");
  if (!file) fail(argv[2]);
  request = malloc(64 << 20);
  request_size = fread(request, 1, 64 << 20, file);
  int count = atoi(argv[3]);
  in_flight = atoi(argv[4]);
  if (count > CONNECTIONS_MAX || in_flight > IN_FLIGHT_MAX) return 2;
  samples = malloc(sizeof(double) * SAMPLES_MAX);
  connection *all = calloc(count, sizeof(connection));
  epoll = epoll_create1(0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  double started = now();
  deadline = started + atof(argv[5]);
  for (int i = 0; i < count; i++) {
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s, (struct sockaddr *)&to, sizeof to)) fail("connect");
    if (fcntl(s, F_SETFL, O_NONBLOCK)) fail("fcntl");
    all[i].socket = s;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = all + i};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, s, &event)) fail("epoll_ctl");
  }
  struct epoll_event ready[256];
  for (int open = 1; open;) {
    int n = epoll_wait(epoll, ready, 256, 1000);
    for (int i = 0; i < n; i++) {
      pull(ready[i].data.ptr);
      push(ready[i].data.ptr);
    }
    if (now() >= deadline) {
      open = 0;
      for (int i = 0; i < count; i++) open |= all[i].sending || all[i].next != all[i].answered;
    }
    if (now() > deadline + 30) fail("no answer for 30 seconds");
  }
  double seconds = now() - started;
  qsort(samples, sample_count, sizeof(double), ascending);
  printf("{\"requests\": %ld, \"seconds\": %.3f, \"requests_per_s\": %.1f, \"mb_per_s\": %.2f, \"p50_ms\": %.3f, "
         "\"p99_ms\": %.3f}\n",
         total, seconds, total / seconds, total * (double)request_size / seconds / 1e6, samples[sample_count / 2] * 1e3,
         samples[(long)(sample_count * 0.99)] * 1e3);
  return 0;
}
