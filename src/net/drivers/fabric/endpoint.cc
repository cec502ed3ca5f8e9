// Opens an endpoint and moves its messages.
#include "net/drivers/fabric/endpoint.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/system_file.h"
#include "net/drivers/fabric/blobs.h"
#include "net/drivers/fabric/objects.h"

namespace sterna::net::fabric {
namespace {

/// What is done at signals is ours again afterwards: providers take some for themselves, to clean
/// up (shm) or to write files about a crash (psm2, as soon as the library is loaded). But a fault
/// may be no end here, and a crash is reported already.
class KeptSignals {
 public:
  KeptSignals() {
    for (int signal = 1; signal < kSignalEnd; ++signal) {
      ::sigaction(signal, nullptr, &before_[static_cast<std::size_t>(signal)]);
    }
  }
  ~KeptSignals() {
    for (int signal = 1; signal < kSignalEnd; ++signal) {
      // Fails for those that nobody may change.
      ::sigaction(signal, &before_[static_cast<std::size_t>(signal)], nullptr);
    }
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr int kSignalEnd = 32;  // Without those of real time.
  std::array<struct sigaction, kSignalEnd> before_{};
};

/// A process that nobody has asked for its status yet has ended, too.
bool has_ended(pid_t process) {
  const auto status = first_line_of(("/proc/" + std::to_string(process) + "/stat").c_str());
  return !status || status->find(") Z ") != std::string::npos;
}

/// Of what the provider gives back: a context that start_read(), send() or receive() gave it.
Endpoint::Completion completion_of(void* context, int error) noexcept {
  static_assert(offsetof(Operation, context) == 0 && std::is_standard_layout_v<Operation>);
  auto* const operation = static_cast<Operation*>(context);
  if (operation->kind == Operation::Kind::read) {
    return {.buffer = nullptr, .error = error, .read = static_cast<Read*>(operation)};
  }
  return {.buffer = static_cast<Buffer*>(operation), .error = error, .read = nullptr};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(const EndpointOptions& options) {
  const KeptSignals kept;
  auto library = load_library();
  if (!library) {
    return library.error();
  }
  std::unique_ptr<Endpoint> made{new (std::nothrow) Endpoint(*library.value())};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> chosen = made->choose(options); !chosen) {
    return chosen.error();
  }
  if (Result<> built = made->build(options); !built) {
    return built.error();
  }
  return made;
}

std::string Endpoint::device(const EndpointOptions& options) {
  const KeptSignals kept;
  auto library = load_library();
  if (!library) {
    return {};
  }
  Endpoint asked{*library.value()};
  return asked.choose(options) ? asked.device_name() : std::string{};
}

std::vector<std::string> Endpoint::boards() {
  const KeptSignals kept;
  std::vector<std::string> names;
  if (auto library = load_library()) {
    const Endpoint asked{*library.value()};
    int error = 0;
    fi_info* const list = asked.ask({}, FI_MSG, error);
    for (const fi_info* info = list; info != nullptr; info = info->next) {
      const std::string_view provider = info->fabric_attr->prov_name;
      // What libfabric puts around it ("verbs;ofi_rxm") need not be named.
      std::string name = std::string{provider.substr(0, provider.find(';'))} + ":" +
                         info->domain_attr->name;
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
    library.value()->freeinfo(list);
  }
  return names;
}

Result<bool> Endpoint::probe(const EndpointOptions& options) {
  const KeptSignals kept;
  auto library = load_library();
  if (!library) {
    return library.error();
  }
  Endpoint asked{*library.value()};
  if (Result<> chosen = asked.choose(options); !chosen) {
    return chosen.error();
  }
  return asked.can_read_;
}

Endpoint::~Endpoint() {
  shut();
}

void Endpoint::shut() noexcept {
  const KeptSignals kept;
  fi::close(endpoint_);  // From here nothing is under way.
  for (fid_mr* region : regions_) {
    fi::close(region);
  }
  regions_.clear();
  for (Slab& slab : slabs_) {
    fi::close(slab.registration);
  }
  fi::close(queue_);
  fi::close(addresses_);
  fi::close(domain_);
  fi::close(fabric_);
  if (info_ != nullptr) {
    library_.freeinfo(std::exchange(info_, nullptr));
  }
}

/// "fi_shm://PID:UID:NUMBER" is the file /dev/shm/PID:UID:NUMBER.
void Endpoint::clean_after(std::span<const std::byte> name) noexcept {
  constexpr std::string_view kScheme = "fi_shm://";
  const std::string text{reinterpret_cast<const char*>(name.data()), name.size()};
  const std::string file = text.substr(std::min(kScheme.size(), text.size())).c_str();
  const pid_t process = std::atoi(file.c_str());
  if (provider_ == "shm" && text.starts_with(kScheme) && process > 0 &&
      file.find_first_not_of("0123456789:") == std::string::npos && has_ended(process)) {
    ::shm_unlink(("/" + file).c_str());
  }
}

Result<> Endpoint::open_queue(std::size_t size) {
  fi_cq_attr attributes{};
  attributes.size = size;
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  int error = ::fi_cq_open(domain_, &attributes, &queue_, nullptr);
  if (error == 0 && ::fi_control(&queue_->fid, FI_GETWAIT, &fd_) != 0) {
    fd_ = -1;
    fi::close(queue_);
    error = -FI_ENOSYS;
  }
  if (error != 0) {  // A provider that must be polled.
    attributes.wait_obj = FI_WAIT_NONE;
    error = ::fi_cq_open(domain_, &attributes, &queue_, nullptr);
  }
  return error == 0 ? Result<>{Done{}}
                    : library_.failure(provider_ + ": no completion queue", error);
}

Result<> Endpoint::build(const EndpointOptions& options) {
  const auto failed = [&](const char* what, int error) {
    return library_.failure(provider_ + " on " + domain_name_ + ": " + what, error);
  };
  if (const int error = library_.fabric(info_->fabric_attr, &fabric_, nullptr)) {
    return failed("no fabric", error);
  }
  if (const int error = ::fi_domain(fabric_, info_, &domain_, nullptr)) {
    return failed("no domain", error);
  }
  fi_av_attr vector{};
  vector.type =
      info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
  if (const int error = ::fi_av_open(domain_, &vector, &addresses_, nullptr)) {
    return failed("no address vector", error);
  }
  if (Result<> opened = open_queue(options.completions_max); !opened) {
    return opened;
  }
  if (const int error = ::fi_endpoint(domain_, info_, &endpoint_, nullptr)) {
    return failed("no endpoint", error);
  }
  if (const int error = ::fi_ep_bind(endpoint_, &addresses_->fid, 0)) {
    return failed("no address vector for the endpoint", error);
  }
  if (const int error = ::fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV)) {
    return failed("no completion queue for the endpoint", error);
  }
  if (const int error = ::fi_enable(endpoint_)) {
    return failed("the endpoint cannot be enabled", error);
  }
  name_.resize(kNameBytesMax);
  std::size_t bytes = name_.size();
  if (const int error = ::fi_getname(&endpoint_->fid, name_.data(), &bytes)) {
    return failed("the endpoint has no name", error);
  }
  name_.resize(bytes);
  return Done{};
}

Result<> Endpoint::register_slab(Slab& slab, std::size_t bytes) {
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0) {
    return Done{};
  }
  int error = ::fi_mr_reg(domain_, slab.memory.get(), bytes, FI_SEND | FI_RECV, 0, next_key_++, 0,
                          &slab.registration, nullptr);
  if (error == 0 && (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    error = ::fi_mr_bind(slab.registration, &endpoint_->fid, 0);
    error = error != 0 ? error : ::fi_mr_enable(slab.registration);
  }
  return error == 0 ? Result<>{Done{}}
                    : library_.failure(provider_ + ": buffers cannot be registered", error);
}

Result<> Endpoint::make_buffers(std::uint32_t count, bool is_send, std::uint32_t owner,
                                std::vector<Buffer*>& to) {
  if (endpoint_ == nullptr) {
    return Errc::closed;
  }
  const std::size_t bytes = count * message_bytes_;
  Slab slab;
  slab.memory.reset(new (std::nothrow) std::byte[bytes]);
  slab.buffers.reset(new (std::nothrow) Buffer[count]);
  if (slab.memory == nullptr || slab.buffers == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> registered = register_slab(slab, bytes); !registered) {
    fi::close(slab.registration);
    return registered;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    Buffer& buffer = slab.buffers[i];
    buffer.memory = slab.memory.get() + i * message_bytes_;
    buffer.registration = slab.registration != nullptr ? ::fi_mr_desc(slab.registration) : nullptr;
    buffer.owner = owner;
    buffer.is_send = is_send;
    to.push_back(&buffer);
  }
  slabs_.push_back(std::move(slab));
  return Done{};
}

Result<fi_addr_t> Endpoint::insert(std::span<const std::byte> name) {
  if (endpoint_ == nullptr) {
    return Errc::closed;
  }
  const bool is_text = info_->addr_format == FI_ADDR_STR;  // Of any length, with its end.
  if (is_text ? name.empty() || name.back() != std::byte{0} : name.size() != name_.size()) {
    return Error{Errc::malformed, "the name of its endpoint is of another kind"};
  }
  fi_addr_t address = FI_ADDR_UNSPEC;
  const int count = ::fi_av_insert(addresses_, name.data(), 1, &address, 0, nullptr);
  if (count != 1) {
    return library_.failure(provider_ + ": the name of its endpoint means nothing here",
                            count < 0 ? count : -FI_EADDRNOTAVAIL);
  }
  return address;
}

Endpoint::Posted Endpoint::posted(long result) noexcept {
  if (result == 0) {
    return Posted::done;
  }
  last_error_ = result;
  return result == -FI_EAGAIN ? Posted::again : Posted::failed;
}

Endpoint::Posted Endpoint::send(Buffer& buffer, fi_addr_t to, bool& was_injected) noexcept {
  if (endpoint_ == nullptr) {
    return posted(-FI_ESHUTDOWN);
  }
  was_injected = buffer.bytes <= inject_bytes_;
  return posted(was_injected ? ::fi_inject(endpoint_, buffer.memory, buffer.bytes, to)
                             : ::fi_send(endpoint_, buffer.memory, buffer.bytes,
                                         buffer.registration, to, &buffer.context));
}

Endpoint::Posted Endpoint::receive(Buffer& buffer) noexcept {
  return endpoint_ == nullptr
             ? posted(-FI_ESHUTDOWN)
             : posted(::fi_recv(endpoint_, buffer.memory, message_bytes_, buffer.registration,
                                FI_ADDR_UNSPEC, &buffer.context));
}

std::string Endpoint::failure() const {
  return library_.strerror(static_cast<int>(-last_error_));
}
std::string Endpoint::error_text(int error) const {
  return library_.strerror(error);
}

std::uint32_t Endpoint::poll(std::span<Completion> completions) noexcept {
  if (queue_ == nullptr) {
    return 0;
  }
  std::array<fi_cq_msg_entry, 16> entries;
  const std::size_t room = std::min(entries.size(), completions.size());
  const ssize_t count = ::fi_cq_read(queue_, entries.data(), room);
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry failed{};
    if (::fi_cq_readerr(queue_, &failed, 0) != 1 || failed.op_context == nullptr) {
      return 0;  // Of an injected message: what its peer does not take shows elsewhere.
    }
    completions[0] = completion_of(failed.op_context, std::max(failed.err, 1));
    return 1;
  }
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
    Completion& done = completions[static_cast<std::size_t>(i)];
    done = completion_of(entry.op_context, 0);
    if (done.buffer != nullptr && !done.buffer->is_send) {
      done.buffer->bytes = static_cast<std::uint32_t>(std::min(entry.len, message_bytes_));
    }
  }
  return count > 0 ? static_cast<std::uint32_t>(count) : 0;
}

bool Endpoint::may_wait() noexcept {
  if (queue_ == nullptr) {
    return true;  // Nothing comes from here any more.
  }
  fid* const waited[] = {&queue_->fid};
  return fd_ >= 0 && ::fi_trywait(fabric_, const_cast<fid**>(waited), 1) == FI_SUCCESS;
}

}  // namespace sterna::net::fabric
