/* What the tests of calls share. */
#ifndef STERNA_TESTS_RPC_H
#define STERNA_TESTS_RPC_H

#include <string.h>

#include "expect.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"

static inline uint32_t next_node(void) {
  return (sterna_node_index() + 1) % sterna_node_count();
}

static inline void expect_detail(const char* words) {
  char text[512];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  if (strstr(text, words) == NULL) {
    fprintf(stderr, "not true: \"%s\" has \"%s\"\n", text, words);
    exit(1);
  }
}

static inline unsigned char* filled(size_t bytes, unsigned seed) {
  unsigned char* const data = malloc(bytes);
  EXPECT(data != NULL);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = (unsigned char)(i * 31 + i / 251 + seed);
  }
  return data;
}

static inline int is_filled(const unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (data[i] != (unsigned char)(i * 31 + i / 251 + seed)) {
      return 0;
    }
  }
  return 1;
}

static inline sterna_status echo(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  const void* const arguments = sterna_rpc_arguments(request, &bytes);
  (void)context;
  EXPECT((uintptr_t)arguments % 16 == 0 || bytes == 0);
  return sterna_rpc_reply(request, arguments, bytes);
}

static inline void register_as(const char* name, sterna_rpc_kind kind, int unpacks,
                               sterna_rpc_service service) {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = kind;
  options.unpacks = (uint32_t)unpacks;
  EXPECT(sterna_rpc_register_with(name, &options, service, NULL) == STERNA_SUCCESS);
}

#endif
