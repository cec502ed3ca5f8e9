/* Rank 0 sends pieces of one array again and again, changed in between, and all that comes is what
 * was sent. Its memory gets large pages meanwhile, where ranks are processes that read it, and keeps
 * its bytes and its place.
 * large [joined|small|heap]: some of it lies in such pages at the end, or none; or what malloc() gives
 * does from the start. */
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <stdint.h>
#include <sys/mman.h>

#include "check.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
enum { kFrame = 2 << 20, kFrames = 2, kPiece = 1 << 20, kRounds = 24 };

/* Aligned, and not of malloc(), whose blocks have large pages at once in some systems. */
static unsigned char* map_frames(void) {
  unsigned char* const mapped = mmap(NULL, (kFrames + 1) * kFrame, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapped != MAP_FAILED);
  return (unsigned char*)(((uintptr_t)mapped + kFrame - 1) / kFrame * kFrame);
}

static long large_kilobytes_at(const void* address) {
  char line[256];
  long kilobytes = -1;
  int is_it = 0;
  FILE* const maps = fopen("/proc/self/smaps", "re");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
      is_it = begin <= (uintptr_t)address && (uintptr_t)address < end;
    } else if (is_it) {
      (void)sscanf(line, "AnonHugePages: %ld", &kilobytes);
    }
  }
  if (maps != NULL) {
    fclose(maps);
  }
  return kilobytes;
}

/* Whether malloc() of this C library has a way to large pages. */
static int may_malloc_have_them(void) {
  int major = 0;
  int minor = 0;
  return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
         (major > 2 || minor >= 35);
}

/* All of a block, the first bytes too, wherever the heap begins; a short one first. */
static void check_heap(void) {
  static const size_t sizes[] = {100 << 10, 4 << 20};
  for (int i = 0; i < 2; ++i) {
    char* const block = malloc(sizes[i]);
    CHECK(block != NULL);
    memset(block, 1, sizes[i]);
    const long kilobytes = large_kilobytes_at(block);
    printf("%ld KB of the heap in large pages\n", kilobytes);
    CHECK(kilobytes >= (long)(sizes[i] >> 10));
  }
}

/* Whether the system joins pages where it is asked to, and only there. */
static int may_be_joined(void) {
  unsigned char* const frames = map_frames();
  memset(frames, 1, kFrame);
  const int may_be = large_kilobytes_at(frames) == 0 &&
                     madvise(frames, kFrame, MADV_COLLAPSE) == 0 && large_kilobytes_at(frames) > 0;
  munmap(frames, kFrame); /* Else it is one mapping with what is mapped next. */
  return may_be;
}

static unsigned char value_of(int round, size_t at) {
  return (unsigned char)((at * 2654435761U >> 20) + (unsigned)round * 37);
}

static void compute(void) {
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < 2e-4) {
  }
}

/* One round: each piece once, of each page of which something changes. Who computes between the
 * start of a send and its wait is read by the receiver, whatever the costs. */
static void send_all(unsigned char* array, int round) {
  for (size_t at = 0; at < (size_t)kFrames * kFrame; at += 512) {
    array[at] = value_of(round, at);
  }
  for (size_t at = 0; at < (size_t)kFrames * kFrame; at += kPiece) {
    MPI_Request request;
    MPI_Isend(array + at, kPiece, MPI_BYTE, 1, round, MPI_COMM_WORLD, &request);
    compute();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void receive_all(unsigned char* into, int round) {
  for (size_t piece = 0; piece < (size_t)kFrames * kFrame; piece += kPiece) {
    MPI_Recv(into, kPiece, MPI_BYTE, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t at = 0; at < kPiece; at += 512) {
      CHECK(into[at] == value_of(round, piece + at));
    }
    CHECK(into[511] == 7);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* const expected = argc > 1 ? argv[1] : "";
  int is_possible = expected[0] == '\0' ||
                    (may_be_joined() && (expected[0] != 'h' || may_malloc_have_them()));
  /* If one finds no large page now, all of them leave it. */
  MPI_Allreduce(MPI_IN_PLACE, &is_possible, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (is_possible && expected[0] == 'h') {
    check_heap();
  } else if (is_possible && world_size > 1 && world_rank < 2) {
    unsigned char* const array = map_frames();
    memset(array, 7, (size_t)kFrames * kFrame);
    /* As often as makes up for joining the pages many times over. */
    for (int round = 0; round < kRounds * (expected[0] != '\0' ? 8 : 1); ++round) {
      world_rank == 0 ? send_all(array, round) : receive_all(array, round);
    }
    if (world_rank == 0 && expected[0] != '\0') {
      const long kilobytes = large_kilobytes_at(array);
      printf("%ld KB in large pages\n", kilobytes);
      CHECK(expected[0] == 'j' ? kilobytes > 0 : kilobytes == 0);
    }
  }
  if (!is_possible && world_rank == 0) {
    printf("this system joins no pages\n");
  }
  return end();
}
