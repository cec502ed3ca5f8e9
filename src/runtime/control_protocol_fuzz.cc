// Frames of the control channel from bytes of any kind: decoders refuse or understand, never more.
#include <cstddef>
#include <cstdint>

#include "runtime/control_protocol.h"

using namespace sterna::runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  if (size < kFrameHeaderBytes || !decode_header(bytes.first(kFrameHeaderBytes))) {
    return 0;
  }
  const std::span<const std::byte> body = bytes.subspan(kFrameHeaderBytes);
  static_cast<void>(decode_hello(body));
  static_cast<void>(decode_host(body));
  if (auto job = decode_job(body); job) {
    static_cast<void>(encode(job.value()));
  }
  static_cast<void>(decode_ended(body));
  static_cast<void>(decode_abort(body));
  static_cast<void>(decode_crash(body));
  static_cast<void>(decode_output(body));
  if (auto status = decode_status(body); status) {
    static_cast<void>(encode(status.value()));
  }
  static_cast<void>(decode_move(body));
  static_cast<void>(decode_moved(body));
  static_cast<void>(decode_explain(body));
  if (auto answer = decode_explained(body); answer) {
    static_cast<void>(encode(answer.value()));
  }
  static_cast<void>(decode_blobs(body));
  static_cast<void>(decode_index(body));
  return 0;
}
