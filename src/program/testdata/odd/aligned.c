/* Variables that want to be at multiples of more than a cache line, of the rank and of its threads. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static __thread _Alignas(128) char line[256];
static __thread _Alignas(4096) char page[64] = {1};
static _Alignas(1 << 17) char large[1 << 17];
static _Alignas(1 << 20) char larger[64] = {1};

static unsigned long over(volatile char* address, uintptr_t alignment) {
  return (unsigned long)((uintptr_t)address % alignment);
}

static void* look(void* unused) {
  (void)unused;
  printf("%lu %lu\n", over(line, 128), over(page, 4096) + (page[0] != 1));
  return NULL;
}

int main(void) {
  pthread_t thread;
  printf("%lu %lu\n", over(large, 1 << 17), over(larger, 1 << 20));
  look(NULL);
  if (pthread_create(&thread, NULL, look, NULL) == 0) {
    pthread_join(thread, NULL);
  }
  return 0;
}
