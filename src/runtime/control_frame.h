// What the two files that write and read the messages of the control channel share. Internal.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/wire.h"
#include "base/wire_fields.h"
#include "runtime/control_protocol.h"

namespace sterna::runtime {

/// A frame under construction: the header is completed at the end.
class FrameWriter {
 public:
  explicit FrameWriter(FrameKind kind) : writer_{frame_, kFrameHeaderBytes + kFrameBodyBytesMax} {
    writer_.u32(0);
    writer_.u16(static_cast<std::uint16_t>(kind));
    writer_.u16(0);
  }
  wire::Writer* operator->() { return &writer_; }
  wire::Writer& operator*() { return writer_; }
  Frame finish() {
    check(writer_.ok(), "a control frame stays within its bound");
    const auto bytes = static_cast<std::uint32_t>(frame_.size() - kFrameHeaderBytes);
    std::memcpy(frame_.data(), &bytes, sizeof bytes);
    return std::move(frame_);
  }

 private:
  Frame frame_;
  wire::Writer writer_;
};

inline Error malformed(std::string_view what) {
  return {Errc::malformed, "control channel: the message '" + std::string{what} +
                               "' breaks its format; are launcher and library of one version?"};
}

/// The result, if the body was read well and to its end.
template <typename T>
Result<T> finish(const wire::Reader& reader, T value, std::string_view what) {
  if (!reader.finished()) {
    return malformed(what);
  }
  return value;
}

/// The two directions of a message whose fields `list(field, value)` names.
template <typename T, typename List>
Frame write_frame(FrameKind kind, const T& value, List list) {
  FrameWriter frame{kind};
  wire::FieldWriter field{*frame};
  list(field, value);
  return frame.finish();
}
template <typename T, typename List>
Result<T> read_body(std::span<const std::byte> body, std::string_view what, List list) {
  wire::Reader reader{body};
  wire::FieldReader field{reader};
  T value{};
  list(field, value);
  return finish(reader, std::move(value), what);
}

}  // namespace sterna::runtime
