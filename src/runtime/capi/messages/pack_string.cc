// pack.h: texts, with their lengths.
#include <cstdint>
#include <cstring>

#include <sterna/pack.h>

#include "runtime/capi/threads/handle.h"

namespace capi = sterna::runtime::capi;

sterna_status sterna_pack_string(sterna_packing* packing, const char* text, sterna_pack_mode mode,
                                 sterna_unpack_mode other) noexcept {
  if (text == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const std::uint64_t bytes = std::strlen(text) + 1;
  const sterna_status status =
      sterna_pack(packing, &bytes, sizeof bytes, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS);
  return status != STERNA_SUCCESS ? status : sterna_pack(packing, text, bytes, mode, other);
}

sterna_status sterna_unpack_string(sterna_unpacking* unpacking, char* buffer, size_t bytes_max,
                                   size_t* length, sterna_pack_mode other,
                                   sterna_unpack_mode mode) noexcept {
  std::uint64_t bytes = 0;
  const sterna_status status =
      sterna_unpack(unpacking, &bytes, sizeof bytes, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS);
  if (status != STERNA_SUCCESS) {
    return status;
  }
  if (bytes == 0) {
    return capi::refuse(STERNA_REFUSED, "{}: what was packed is no text", __func__);
  }
  if (length != nullptr) {
    *length = bytes - 1;
  }
  return bytes <= bytes_max
             ? sterna_unpack(unpacking, buffer, bytes, other, mode)
             : capi::refuse(STERNA_TRUNCATED,
                            "{}: the text has {} bytes with the 0 that ends it, its memory {}: it "
                            "is still to be taken, by sterna_unpack",
                            __func__, bytes, bytes_max);
}
