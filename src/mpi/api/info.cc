// Info objects. Before MPI_Init and after MPI_Finalize as well, from any thread.
#include "mpi/info/info.h"

#include <cstring>

#include <mpi.h>

#include "mpi/any_time.h"
#include "mpi/call_scope.h"

namespace sterna::mpi {
namespace {

template <typename Work>
int on_info(const char* name, MPI_Info handle, Work work) noexcept {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{name};
  Info* info = find_info(handle);
  if (info == nullptr) {
    return call.fail(MPI_ERR_INFO, handle == MPI_INFO_NULL ? "the info object is MPI_INFO_NULL"
                                                           : "the info object is not one");
  }
  return work(call, *info);
}

int check_key(const AnyCall& call, const char* key) noexcept {
  return key != nullptr && key[0] != '\0' && strnlen(key, MPI_MAX_INFO_KEY) < MPI_MAX_INFO_KEY
             ? MPI_SUCCESS
             : call.fail(MPI_ERR_INFO_KEY, "the key is null, empty or longer than %d characters",
                         MPI_MAX_INFO_KEY - 1);
}

int give(const AnyCall& call, Info* made, MPI_Info* handle) noexcept {
  if (made == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *handle = reinterpret_cast<MPI_Info>(made);
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int PMPI_Info_create(MPI_Info* info) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Info_create"};
  return give(call, create_info(call.its), info);
}

int PMPI_Info_create_env(int, char*[], MPI_Info* info) {
  const CallScope scope{runtime::Callers::any};
  const AnyCall call{"MPI_Info_create_env"};
  return give(call, create_info(call.its), info);
}

int PMPI_Info_dup(MPI_Info info, MPI_Info* newinfo) {
  return on_info("MPI_Info_dup", info, [&](const AnyCall& call, Info& found) -> int {
    return give(call, copy_info(call.its, found), newinfo);
  });
}

int PMPI_Info_free(MPI_Info* info) {
  return on_info("MPI_Info_free", *info, [&](const AnyCall& call, Info& found) -> int {
    if (*info == MPI_INFO_ENV) {
      return call.fail(MPI_ERR_INFO, "MPI_INFO_ENV cannot be freed");
    }
    destroy_info(call.its, &found);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
  });
}

int PMPI_Info_set(MPI_Info info, const char* key, const char* value) {
  return on_info("MPI_Info_set", info, [&](const AnyCall& call, Info& found) -> int {
    if (const int error = check_key(call, key)) {
      return error;
    }
    if (value == nullptr || strnlen(value, MPI_MAX_INFO_VAL) >= MPI_MAX_INFO_VAL) {
      return call.fail(MPI_ERR_INFO_VALUE, "the value is null or longer than %d characters",
                       MPI_MAX_INFO_VAL - 1);
    }
    return set_info(call.its, found, key, value) ? MPI_SUCCESS : call.fail_plain(MPI_ERR_NO_MEM);
  });
}

int PMPI_Info_delete(MPI_Info info, const char* key) {
  return on_info("MPI_Info_delete", info, [&](const AnyCall& call, Info& found) -> int {
    if (const int error = check_key(call, key)) {
      return error;
    }
    return remove_info(call.its, found, key)
               ? MPI_SUCCESS
               : call.fail(MPI_ERR_INFO_NOKEY, "there is no key \"%s\"", key);
  });
}

int PMPI_Info_get_nkeys(MPI_Info info, int* nkeys) {
  return on_info("MPI_Info_get_nkeys", info, [&](const AnyCall&, Info& found) -> int {
    *nkeys = 0;
    for (const InfoPair* pair = found.first; pair != nullptr; pair = pair->next) {
      ++*nkeys;
    }
    return MPI_SUCCESS;
  });
}

int PMPI_Info_get_nthkey(MPI_Info info, int n, char* key) {
  return on_info("MPI_Info_get_nthkey", info, [&](const AnyCall& call, Info& found) -> int {
    const InfoPair* pair = found.first;
    for (int i = 0; i < n && pair != nullptr; ++i) {
      pair = pair->next;
    }
    if (n < 0 || pair == nullptr) {
      return call.fail(MPI_ERR_ARG, "there is no key number %d", n);
    }
    std::strcpy(key, pair->key);
    return MPI_SUCCESS;
  });
}

int PMPI_Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  return on_info("MPI_Info_get", info, [&](const AnyCall& call, Info& found) -> int {
    if (const int error = check_key(call, key)) {
      return error;
    }
    if (valuelen < 0) {
      return call.fail(MPI_ERR_ARG, "the length is %d", valuelen);
    }
    const char* text = get_info(found, key);
    *flag = text != nullptr ? 1 : 0;
    if (text != nullptr) {
      const std::size_t bytes = strnlen(text, static_cast<std::size_t>(valuelen));
      std::memcpy(value, text, bytes);
      value[bytes] = '\0';
    }
    return MPI_SUCCESS;
  });
}

int PMPI_Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  return on_info("MPI_Info_get_string", info, [&](const AnyCall& call, Info& found) -> int {
    if (const int error = check_key(call, key)) {
      return error;
    }
    const char* text = get_info(found, key);
    *flag = text != nullptr ? 1 : 0;
    if (text != nullptr) {
      if (*buflen > 0) {
        const std::size_t bytes = strnlen(text, static_cast<std::size_t>(*buflen) - 1);
        std::memcpy(value, text, bytes);
        value[bytes] = '\0';
      }
      *buflen = static_cast<int>(std::strlen(text)) + 1;
    }
    return MPI_SUCCESS;
  });
}

int PMPI_Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  return on_info("MPI_Info_get_valuelen", info, [&](const AnyCall& call, Info& found) -> int {
    if (const int error = check_key(call, key)) {
      return error;
    }
    const char* text = get_info(found, key);
    *flag = text != nullptr ? 1 : 0;
    if (text != nullptr) {
      *valuelen = static_cast<int>(std::strlen(text));
    }
    return MPI_SUCCESS;
  });
}

}  // extern "C"
}  // namespace sterna::mpi
