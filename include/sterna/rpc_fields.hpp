// How values of typed services (rpc.hpp) are cut into pieces of bytes, and made of them again. Not
// for programs to include: what lies in namespace detail may change.
#ifndef STERNA_RPC_FIELDS_HPP
#define STERNA_RPC_FIELDS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sterna/rpc.h"

namespace sterna::typed {

/// A call that failed; what() has the words of the service or of the runtime.
class RpcError : public std::runtime_error {
 public:
  RpcError(sterna_status status, const std::string& text)
      : std::runtime_error{text}, status_{status} {}
  [[nodiscard]] sterna_status status() const noexcept { return status_; }

 private:
  sterna_status status_;
};

[[noreturn]] inline void throw_error(sterna_status status) {
  char text[1024] = "";
  (void)sterna_error_detail(text, sizeof text);
  throw RpcError{status, text[0] != '\0' ? text : sterna_status_text(status)};
}

inline void expect_success(sterna_status status) {
  if (status != STERNA_SUCCESS) {
    throw_error(status);
  }
}

namespace detail {

struct AnyFields {
  void operator()(auto&...) const;
};
template <typename T>
concept HasFields = requires(T& value, AnyFields& fields) { value.sterna_fields(fields); };

template <typename T>
inline constexpr bool is_vector = false;
template <typename T, typename A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <typename T>
inline constexpr bool is_span = false;
template <typename T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;
template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <typename T>
inline constexpr bool is_array = false;
template <typename T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <typename T>
inline constexpr bool is_tuple = false;
template <typename... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <typename A, typename B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// Bytes as they are.
template <typename T>
inline constexpr bool is_plain =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
    !std::is_null_pointer_v<T> && !HasFields<T> && !is_span<T> && !is_optional<T> && !is_tuple<T> &&
    !std::is_same_v<T, std::string_view>;
template <typename T, std::size_t N>
inline constexpr bool is_plain<std::array<T, N>> = is_plain<T>;

/// What a service holds for a parameter: views get something to look at.
template <typename T>
struct Held {
  using Type = std::remove_cvref_t<T>;
};
template <typename T, std::size_t N>
struct Held<std::span<const T, N>> {
  using Type = std::vector<T>;
};
template <>
struct Held<std::string_view> {
  using Type = std::string;
};
template <typename T>
using HeldFor = typename Held<std::remove_cvref_t<T>>::Type;

template <typename T>
inline constexpr bool is_sendable_parameter =
    !std::is_lvalue_reference_v<T> || std::is_const_v<std::remove_reference_t<T>>;

/// Calls archive.bytes(data, count of bytes) and archive.count(number) for all there is of `value`.
template <typename Archive, typename T>
void each(Archive& archive, T& value) {
  using Value = std::remove_cv_t<T>;
  static_assert(
      !std::is_pointer_v<Value> && !std::is_null_pointer_v<Value>,
      "Sterna: a pointer means nothing on another node: send what it points to, by value, "
      "in a std::vector or a std::string");
  if constexpr (HasFields<T> || HasFields<Value>) {
    const_cast<Value&>(value).sterna_fields(archive);
  } else if constexpr (is_plain<Value>) {
    archive.bytes(&value, sizeof value);
  } else if constexpr (std::is_same_v<Value, std::string> ||
                       std::is_same_v<Value, std::string_view> || is_vector<Value> ||
                       is_span<Value>) {
    using Element = std::remove_cv_t<typename Value::value_type>;
    archive.resize(value);
    if constexpr (std::is_same_v<Value, std::vector<bool>>) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        unsigned char bit = value[i] ? 1 : 0;
        archive.bytes(&bit, 1);
        archive.assign(value, i, bit);
      }
    } else if constexpr (is_plain<Element>) {
      archive.bytes(value.data(), value.size() * sizeof(Element));
    } else {
      for (auto& element : value) {
        each(archive, element);
      }
    }
  } else if constexpr (is_array<Value>) {
    for (auto& element : value) {
      each(archive, element);
    }
  } else if constexpr (is_tuple<Value>) {
    std::apply([&](auto&... elements) { (each(archive, elements), ...); }, value);
  } else if constexpr (is_optional<Value>) {
    archive.engage(value);
    if (value) {
      each(archive, *value);
    }
  } else {
    static_assert(HasFields<T>,
                  "Sterna: this type cannot be sent: it is not trivially copyable, and no string, "
                  "vector, array, pair, tuple or optional. Give it a member  template <typename "
                  "Fields> void sterna_fields(Fields& fields) { fields(first, second); }");
  }
}

/// The part of an archive that users see: fields(first, second, ...).
template <typename Archive>
struct FieldsOf {
  void operator()(auto&... values) { (each(static_cast<Archive&>(*this), values), ...); }
};

/// Puts arguments into a packing: they stay where they are until the end of the call, unless
/// `is_copied`.
class Packer : public FieldsOf<Packer> {
 public:
  Packer(sterna_rpc_packing& packing, bool is_copied)
      : packing_{packing}, mode_{is_copied ? STERNA_PACK_SAFER : STERNA_PACK_CHEAPER} {}
  void bytes(const void* data, std::size_t bytes) {
    expect_success(sterna_rpc_pack(&packing_, data, bytes, mode_));
  }
  void resize(const auto& value) { number(value.size()); }
  void engage(const auto& value) { number(value ? 1 : 0); }
  void assign(const auto&, std::size_t, unsigned char) {}
  void number(std::uint64_t value) {
    expect_success(sterna_rpc_pack(&packing_, &value, sizeof value, STERNA_PACK_SAFER));
  }

 private:
  sterna_rpc_packing& packing_;
  sterna_pack_mode mode_;
};

struct Malformed : RpcError {
  Malformed() : RpcError{STERNA_REFUSED, "the bytes are not those of the types of this service"} {}
};

template <typename Archive>
class Reading : public FieldsOf<Archive> {
 public:
  /// The count comes from another process: it is believed as far as there are bytes for so many
  /// elements. One that is no plain type has at least one.
  void resize(auto& value) {
    using Element = typename std::remove_cvref_t<decltype(value)>::value_type;
    const std::uint64_t count = number();
    if (count > static_cast<Archive&>(*this).left() / (is_plain<Element> ? sizeof(Element) : 1)) {
      throw Malformed{};
    }
    value.resize(count);
  }
  void engage(auto& value) {
    if (number() != 0) {
      value.emplace();
    } else {
      value.reset();
    }
  }
  void assign(auto& value, std::size_t i, unsigned char bit) { value[i] = bit != 0; }
  std::uint64_t number() {
    std::uint64_t value = 0;
    static_cast<Archive&>(*this).bytes(&value, sizeof value);
    return value;
  }
};

/// Takes them out again. Long ones may come after it: finish() waits for them.
class Unpacker : public Reading<Unpacker> {
 public:
  explicit Unpacker(sterna_rpc_request* request) : request_{request} {}
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  /// What was asked for comes to memory that goes, whoever has thrown.
  ~Unpacker() { (void)sterna_rpc_wait_data(request_); }
  void bytes(void* data, std::size_t bytes) {
    if (sterna_rpc_unpack(request_, data, bytes, STERNA_UNPACK_CHEAPER) != STERNA_SUCCESS) {
      throw Malformed{};
    }
  }
  [[nodiscard]] std::uint64_t left() const { return sterna_rpc_bytes_left(request_); }
  void finish() {
    if (sterna_rpc_wait_data(request_) != STERNA_SUCCESS) {
      throw Malformed{};
    }
  }

 private:
  sterna_rpc_request* request_;
};

class Writer : public FieldsOf<Writer> {
 public:
  void bytes(const void* data, std::size_t bytes) {
    const auto* const from = static_cast<const std::byte*>(data);
    all.insert(all.end(), from, from + bytes);
  }
  void resize(const auto& value) { number(value.size()); }
  void engage(const auto& value) { number(value ? 1 : 0); }
  void assign(const auto&, std::size_t, unsigned char) {}
  void number(std::uint64_t value) { bytes(&value, sizeof value); }
  std::vector<std::byte> all;
};

class Reader : public Reading<Reader> {
 public:
  explicit Reader(std::span<const std::byte> all) : rest_{all} {}
  void bytes(void* data, std::size_t bytes) {
    if (bytes > rest_.size()) {
      throw Malformed{};
    }
    if (bytes != 0) {
      std::memcpy(data, rest_.data(), bytes);
    }
    rest_ = rest_.subspan(bytes);
  }
  [[nodiscard]] std::uint64_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

/// The same in all processes of one program; tells services of one name and other types apart.
template <typename Signature>
constexpr std::uint64_t number_of_signature() {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char* c = __PRETTY_FUNCTION__; *c != '\0'; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
  }
  return hash;
}

template <typename Result>
Result read_result(std::span<const std::byte> bytes) {
  if constexpr (!std::is_void_v<Result>) {
    HeldFor<Result> value{};
    Reader reader{bytes};
    each(reader, value);
    return value;
  }
}

struct EndOfCall {
  void operator()(sterna_rpc_call* call) const noexcept {
    (void)sterna_rpc_wait(call, nullptr, 0, nullptr);
  }
};
/// A call under way: its end waits for it, since until then its arguments are read.
using OwnedCall = std::unique_ptr<sterna_rpc_call, EndOfCall>;

/// Waits for a call, and takes what it brought.
template <typename Result>
Result take(OwnedCall call) {
  std::size_t bytes = 0;
  expect_success(sterna_rpc_await(call.get(), &bytes, STERNA_FOREVER));
  std::vector<std::byte> reply(bytes);
  expect_success(sterna_rpc_wait(call.release(), reply.data(), reply.size(), nullptr));
  return read_result<Result>(reply);
}

}  // namespace detail

}  // namespace sterna::typed

#endif  // STERNA_RPC_FIELDS_HPP
