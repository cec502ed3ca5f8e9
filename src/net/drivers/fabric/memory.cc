// Memory of programs: registered for as long as one transfer takes, and read.
//
// No registration outlives its transfer. So none can be of memory that the program has unmapped, or
// mapped anew, meanwhile, and there is no cache to keep right: while a message is under way its
// memory belongs to it. And what a peer was told of is of no use to it once that message has ended.
#include <algorithm>
#include <cstring>

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include "net/drivers/fabric/endpoint.h"
#include "net/drivers/fabric/objects.h"
#include "net/opening/auth.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace sterna::net::fabric {
namespace {

constexpr int kKeyTries = 8;

/// A key that cannot be guessed, as far as the provider's keys are long enough for that.
std::uint64_t random_key(std::size_t bytes) noexcept {
  const Nonce nonce = random_nonce();
  std::uint64_t key;
  std::memcpy(&key, nonce.data(), sizeof key);
  return bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

/// FI_MR_ALLOCATED: pages are to be there before they are registered. A hint: where the system
/// cannot, the registration itself fails or not.
void populate(std::span<const std::byte> memory, bool is_written) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin,
            is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

}  // namespace

Result<Region> Endpoint::register_region(std::span<const std::byte> memory, std::uint64_t access) {
  if (endpoint_ == nullptr) {
    return Errc::closed;
  }
  const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
  if ((mode & FI_MR_ALLOCATED) != 0) {
    populate(memory, access == FI_READ);
  }
  Region region;
  int error = -FI_ENOKEY;
  for (int i = 0; i < kKeyTries && error == -FI_ENOKEY; ++i) {
    const std::uint64_t key =
        (mode & FI_MR_PROV_KEY) != 0 ? 0 : random_key(info_->domain_attr->mr_key_size);
    error = ::fi_mr_reg(domain_, memory.data(), memory.size(), access, 0, key, 0,
                        &region.registration, nullptr);
  }
  if (error == 0 && (mode & FI_MR_ENDPOINT) != 0) {
    error = ::fi_mr_bind(region.registration, &endpoint_->fid, 0);
    error = error != 0 ? error : ::fi_mr_enable(region.registration);
  }
  if (error == 0) {
    region.key = ::fi_mr_key(region.registration);
    error = region.key == FI_KEY_NOTAVAIL ? -FI_ENOKEY : 0;
  }
  if (error != 0) {
    fi::close(region.registration);
    return library_.failure(provider_ + ": memory of the program cannot be registered", error);
  }
  region.address =
      (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0;
  regions_.push_back(region.registration);
  return region;
}

Result<Region> Endpoint::expose(std::span<const std::byte> memory) {
  return register_region(memory, FI_REMOTE_READ);
}

void Endpoint::close(Region& region) noexcept {
  const auto found = std::ranges::find(regions_, region.registration);
  if (region.registration != nullptr && found != regions_.end()) {
    *found = regions_.back();
    regions_.pop_back();
    fi::close(region.registration);
  }
  region = {};
}

Endpoint::Posted Endpoint::start_read(Read& read, fi_addr_t peer, RemoteRegion from) {
  if (endpoint_ == nullptr) {
    return posted(-FI_ESHUTDOWN);
  }
  void* description = nullptr;
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
    if (read.local.registration == nullptr) {
      auto local = register_region(read.into, FI_READ);
      if (!local) {
        return posted(-FI_ENOMEM);
      }
      read.local = local.value();
    }
    description = ::fi_mr_desc(read.local.registration);
  }
  // What it has registered stays so for the next try.
  return posted(::fi_read(endpoint_, read.into.data(), read.into.size(), description, peer,
                          from.address, from.key, &read.context));
}

}  // namespace sterna::net::fabric
