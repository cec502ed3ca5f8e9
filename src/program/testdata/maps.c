#define _GNU_SOURCE
/* Sets aside much more memory than it uses, and gives memory back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

/* Resident memory of the process, in MiB. */
static long resident(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*s %ld", &pages) != 1) abort();
  fclose(file);
  return pages / 256;
}

static int is_zero(const char* bytes, size_t count) {
  for (size_t i = 0; i < count; i += 512)
    if (bytes[i]) return 0;
  return 1;
}

int main(void) {
  int bad = 0;
  const long begin = resident();
  char* reserved = mmap(NULL, 1024 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED || resident() > begin + 32) bad |= 1;
  if (madvise(reserved, 1024 * MIB, MADV_DONTNEED) || resident() > begin + 32) bad |= 2;
  mprotect(reserved, 128 * MIB, PROT_READ | PROT_WRITE);
  memset(reserved, 1, 128 * MIB);
  if (resident() < begin + 100) bad |= 4;
  madvise(reserved, 64 * MIB, MADV_DONTNEED);
  if (resident() > begin + 96 || !is_zero(reserved, 64 * MIB) || reserved[64 * MIB] != 1) bad |= 8;
  memset(reserved, 1, 64 * MIB);
  munmap(reserved, 64 * MIB); /* A part. */
  if (resident() > begin + 96 || reserved[64 * MIB] != 1) bad |= 16;
  char* again = mmap(reserved + 64 * MIB, 64 * MIB, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (again != reserved + 64 * MIB || resident() > begin + 32 || !is_zero(again, 64 * MIB)) bad |= 32;
  memset(again, 1, 64 * MIB);
  munmap(again, 960 * MIB);
  char* fresh = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!is_zero(fresh, 64 * MIB)) bad |= 64;
  munmap(fresh, 64 * MIB);
  printf("bad %d\n", bad);
  return 0;
}
