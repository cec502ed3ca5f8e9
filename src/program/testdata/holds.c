#define _GNU_SOURCE
/* Acquires things that do not move, one at a time, and gives them back. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_calls.h"

int main(int argc, char** argv) {
  (void)argc;
  (void)argv;
  sterna_test_pause(); /* 1: nothing */
  FILE* file = fopen("/etc/passwd", "r");
  sterna_test_pause(); /* 2: a file */
  fclose(file);
  int fd = open("/dev/null", O_RDONLY);
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  sterna_test_pause(); /* 3: descriptors */
  close(fd);
  close(pair[0]);
  close(pair[1]);
  DIR* directory = opendir("/");
  void* library = dlopen("libm.so.6", RTLD_NOW);
  sterna_test_pause(); /* 4: directory, library */
  closedir(directory);
  dlclose(library);
  fd = open("/etc/passwd", O_RDONLY);
  void* mapping = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  sterna_test_pause(); /* 5: mapping */
  munmap(mapping, 4096);
  char* memory = mmap(0, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int zero = 1;
  for (int i = 0; i < 100000; i++) zero &= memory[i] == 0;
  memset(memory, 1, 100000);
  memory = mremap(memory, 100000, 300000, MREMAP_MAYMOVE);
  zero &= memory[99999] == 1 && memory[100001 + 4096] == 0;
  sterna_test_pause(); /* 6: nothing again, with memory of its own */
  munmap(memory, 300000);
  return zero ? 0 : 1;
}
