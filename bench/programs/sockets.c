/* Ways to use one tcp connection between two processes of a host, each alone: prints
 * "WAY.BYTES MICROSECONDS" (one way, the median of many batches of a ping-pong).
 *
 *   spin      recv() without waiting, again and again, and send(): what the driver tcp does
 *   epoll     the same, where each recv() comes after an epoll_wait() that has found something
 *   block     recv() that sleeps until there is something
 *   uring     io_uring: one call submits the send and the next receive; then the ring of
 * completions is looked at, again and again enter     the same, where each look asks the kernel, so
 * that it need not interrupt who looks sleep     io_uring: the same call sleeps until the receive
 * has completed zerocopy  as spin, with MSG_ZEROCOPY from 64 KB on; waits for the kernel's note
 * before it goes on
 *
 * usage: sockets BATCHES BYTES...
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <mpi.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "timing.h"

static int connection, events;
static char* buffer;

static void give_up(const char* what) {
  fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void set(int level, int name, int value) {
  if (setsockopt(connection, level, name, &value, sizeof value) != 0) {
    give_up("setsockopt");
  }
}

/* Both ranks: rank 1 listens and tells its port. */
static void join(int rank) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t bytes = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = socket(AF_INET, SOCK_STREAM, 0);
  if (one < 0) {
    give_up("socket");
  }
  if (rank == 1) {
    if (bind(one, (struct sockaddr*)&address, bytes) != 0 || listen(one, 1) != 0 ||
        getsockname(one, (struct sockaddr*)&address, &bytes) != 0) {
      give_up("listen");
    }
    int port = address.sin_port;
    MPI_Send(&port, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    connection = accept(one, NULL, NULL);
    close(one);
  } else {
    int port = 0;
    MPI_Recv(&port, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    address.sin_port = (in_port_t)port;
    if (connect(one, (struct sockaddr*)&address, bytes) != 0) {
      give_up("connect");
    }
    connection = one;
  }
  if (connection < 0) {
    give_up("accept");
  }
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) != 0) {
    give_up("reno");
  }
  events = epoll_create1(0);
  struct epoll_event readable = {.events = EPOLLIN};
  if (events < 0 || epoll_ctl(events, EPOLL_CTL_ADD, connection, &readable) != 0) {
    give_up("epoll");
  }
}

static void send_all(int bytes, int flags) {
  for (int done = 0; done < bytes;) {
    const ssize_t sent = send(connection, buffer + done, (size_t)(bytes - done), flags);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      give_up("send");
    }
    done += sent > 0 ? (int)sent : 0;
  }
}

static void receive_all(int bytes, int flags) {
  for (int done = 0; done < bytes;) {
    const ssize_t got = recv(connection, buffer + done, (size_t)(bytes - done), flags);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      give_up("recv");
    }
    done += got > 0 ? (int)got : 0;
  }
}

static void send_spin(int bytes) {
  send_all(bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}
static void receive_spin(int bytes) {
  receive_all(bytes, MSG_DONTWAIT);
}
static void send_block(int bytes) {
  send_all(bytes, MSG_NOSIGNAL);
}
static void receive_block(int bytes) {
  receive_all(bytes, MSG_WAITALL);
}

static void receive_epoll(int bytes) {
  for (int done = 0; done < bytes;) {
    struct epoll_event found;
    while (epoll_wait(events, &found, 1, 0) == 0) {
    }
    const ssize_t got = recv(connection, buffer + done, (size_t)(bytes - done), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      give_up("recv");
    }
    done += got > 0 ? (int)got : 0;
  }
}

/* The buffer may be used again when the kernel has said so. */
static void send_zerocopy(int bytes) {
  if (bytes < 65536) {
    send_spin(bytes);
    return;
  }
  int calls = 0;
  for (int done = 0; done < bytes;) {
    const ssize_t sent = send(connection, buffer + done, (size_t)(bytes - done),
                              MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) {
      give_up("send");
    }
    done += sent > 0 ? (int)sent : 0;
    calls += sent > 0;
  }
  while (calls > 0) {
    char control[256];
    struct msghdr note = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(connection, &note, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      if (errno != EAGAIN) {
        give_up("recvmsg");
      }
      continue;
    }
    struct cmsghdr* const head = CMSG_FIRSTHDR(&note);
    struct sock_extended_err told;
    if (head == NULL) {
      continue;
    }
    memcpy(&told, CMSG_DATA(head), sizeof told);
    calls -= (int)(told.ee_data - told.ee_info) + 1;
  }
}

/* The rings of io_uring, as the kernel lays them out. */
static struct {
  int fd;
  unsigned queued;
  _Atomic unsigned *sq_tail, *cq_head, *cq_tail;
  unsigned sq_mask, cq_mask, *sq_array;
  struct io_uring_sqe* sqes;
  struct io_uring_cqe* cqes;
} ring;

/* False: this system has none. */
static int open_ring(unsigned flags) {
  struct io_uring_params params = {.flags = flags};
  ring.fd = (int)syscall(SYS_io_uring_setup, 16, &params);
  if (ring.fd < 0) {
    return 0;
  }
  const size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  const size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
  char* const rings = mmap(NULL, sq_bytes > cq_bytes ? sq_bytes : cq_bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
  ring.sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
  if (rings == MAP_FAILED || ring.sqes == MAP_FAILED ||
      !(params.features & IORING_FEAT_SINGLE_MMAP)) {
    return 0;
  }
  ring.sq_tail = (_Atomic unsigned*)(rings + params.sq_off.tail);
  ring.sq_mask = *(unsigned*)(rings + params.sq_off.ring_mask);
  ring.sq_array = (unsigned*)(rings + params.sq_off.array);
  ring.cq_head = (_Atomic unsigned*)(rings + params.cq_off.head);
  ring.cq_tail = (_Atomic unsigned*)(rings + params.cq_off.tail);
  ring.cq_mask = *(unsigned*)(rings + params.cq_off.ring_mask);
  ring.cqes = (struct io_uring_cqe*)(rings + params.cq_off.cqes);
  return 1;
}

enum { kSend = 1, kReceive = 2 };
enum look { kRing, kEnter, kSleep }; /* How it is seen that something has completed. */

static void queue(int what, int done, int bytes) {
  const unsigned tail = atomic_load_explicit(ring.sq_tail, memory_order_relaxed);
  struct io_uring_sqe* const entry = &ring.sqes[tail & ring.sq_mask];
  memset(entry, 0, sizeof *entry);
  entry->opcode = what == kSend ? IORING_OP_SEND : IORING_OP_RECV;
  entry->fd = connection;
  entry->addr = (unsigned long)(buffer + done);
  entry->len = (unsigned)(bytes - done);
  entry->msg_flags = what == kSend ? MSG_NOSIGNAL | MSG_WAITALL : MSG_WAITALL;
  entry->user_data = (unsigned)what;
  ring.sq_array[tail & ring.sq_mask] = tail & ring.sq_mask;
  atomic_store_explicit(ring.sq_tail, tail + 1, memory_order_release);
  ++ring.queued;
}

static void enter(enum look look) {
  const long done = syscall(SYS_io_uring_enter, ring.fd, ring.queued, look == kSleep ? 1 : 0,
                            look == kRing ? 0 : IORING_ENTER_GETEVENTS, NULL, 0);
  if (done < 0 && errno != EINTR && errno != EAGAIN) {
    give_up("io_uring_enter");
  }
  if (done > 0) {
    ring.queued -= (unsigned)done;
  }
}

/* Until `wanted`, a sum of what queue() takes, has completed; short ones are queued again. */
static void complete(int wanted, int bytes, enum look look) {
  int done[3] = {0, 0, 0};
  while (wanted != 0) {
    const unsigned head = atomic_load_explicit(ring.cq_head, memory_order_relaxed);
    if (head == atomic_load_explicit(ring.cq_tail, memory_order_acquire)) {
      if (ring.queued != 0 || look != kRing) {
        enter(look);
      }
      continue;
    }
    const struct io_uring_cqe seen = ring.cqes[head & ring.cq_mask];
    atomic_store_explicit(ring.cq_head, head + 1, memory_order_release);
    const int what = (int)seen.user_data;
    if (seen.res <= 0) {
      errno = -seen.res;
      give_up("io_uring");
    }
    done[what] += seen.res;
    if (done[what] < bytes) {
      queue(what, done[what], bytes);
    } else {
      wanted &= ~what;
    }
  }
}

static void exchange_ring(int rank, int bytes, int count, enum look look) {
  for (int i = 0; i < count; ++i) {
    if (rank == 1) {  // Its send of the turn before goes with this receive.
      if (i > 0) {
        queue(kSend, 0, bytes);
      }
      queue(kReceive, 0, bytes);
      complete(i > 0 ? kSend | kReceive : kReceive, bytes, look);
    } else {
      queue(kSend, 0, bytes);
      queue(kReceive, 0, bytes);
      complete(kSend | kReceive, bytes, look);
    }
  }
  if (rank == 1) {
    queue(kSend, 0, bytes);
    complete(kSend, bytes, look);
  }
}

struct way {
  const char* name;
  void (*send)(int bytes);
  void (*receive)(int bytes);
  unsigned ring_flags;
  enum look look;
};

static const struct way ways[] = {
    {"spin", send_spin, receive_spin, 0, kRing},
    {"epoll", send_spin, receive_epoll, 0, kRing},
    {"block", send_block, receive_block, 0, kRing},
    {"zerocopy", send_zerocopy, receive_spin, 0, kRing},
    {"uring", NULL, NULL, 0, kRing},
    {"enter", NULL, NULL, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, kEnter},
    {"sleep", NULL, NULL, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, kSleep},
};

static void exchange(const struct way* way, int rank, int bytes, int count) {
  if (way->send == NULL) {
    exchange_ring(rank, bytes, count, way->look);
    return;
  }
  for (int i = 0; i < count; ++i) {
    if (rank == 0) {
      way->send(bytes);
      way->receive(bytes);
    } else {
      way->receive(bytes);
      way->send(bytes);
    }
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  const int batches = init_for_batches(&argc, &argv, "sockets");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  buffer = take_memory(largest(argv + 2, argc - 2));
  double* times = take_memory(sizeof(double) * (size_t)batches);
  join(rank);
  set(SOL_SOCKET, SO_ZEROCOPY, 1);
  for (unsigned w = 0; w < sizeof ways / sizeof *ways; ++w) {
    const struct way* const way = &ways[w];
    int has_way = way->send != NULL || open_ring(way->ring_flags);
    MPI_Allreduce(MPI_IN_PLACE, &has_way, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 2; i < argc && has_way; ++i) {
      const int bytes = atoi(argv[i]);
      const int count = bytes <= 4096 ? 100 : bytes <= 65536 ? 25 : 5;
      prefer_this_thread();
      exchange(way, rank, bytes, count);
      for (int batch = 0; batch < batches; ++batch) {
        const double begin = MPI_Wtime();
        exchange(way, rank, bytes, count);
        times[batch] = (MPI_Wtime() - begin) / (2 * count) * 1e6;
      }
      stop_preferring();
      if (rank == 0) {
        printf("%s.%d %.4f\n", way->name, bytes, median(times, batches));
      }
    }
    if (way->send == NULL && ring.fd >= 0) {
      close(ring.fd);
    }
  }
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  free(times);
  free(buffer);
  MPI_Finalize();
  return 0;
}
