// Chooses a provider, a domain of it, and what of it is used.
#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "net/drivers/fabric/endpoint.h"

namespace sterna::net::fabric {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 14);
constexpr std::size_t kAlign = 64;
constexpr std::uint64_t kReadCaps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_REMOTE_READ;

char* copy_of(const std::string& text) {
  return text.empty() ? nullptr : ::strdup(text.c_str());  // Freed with the hints.
}

bool stays_inside_host(const fi_info& info) {
  return std::string_view{info.fabric_attr->prov_name}.find("shm") != std::string_view::npos;
}

/// Layered providers ("tcp;ofi_rxm") do not look at the domain that is asked for.
const fi_info* first_fitting(const fi_info* list, const EndpointOptions& options) {
  while (list != nullptr &&
         (list->ep_attr->max_msg_size < options.message_bytes ||
          (stays_inside_host(*list) && options.provider.empty()) ||
          (!options.domain.empty() && options.domain != list->domain_attr->name))) {
    list = list->next;
  }
  return list;
}

}  // namespace

/// What fits, the provider's favourites first; null: nothing, as `error` says.
fi_info* Endpoint::ask(const EndpointOptions& options, std::uint64_t caps, int& error) const {
  fi_info* const hints = library_.dupinfo(nullptr);
  if (hints == nullptr) {
    error = -FI_ENOMEM;
    return nullptr;
  }
  hints->caps = caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->name = copy_of(options.domain);
  hints->fabric_attr->prov_name = copy_of(options.provider);
  fi_info* list = nullptr;
  error = library_.getinfo(kVersion, nullptr, nullptr, 0, hints, &list);
  library_.freeinfo(hints);
  return list;
}

/// For an error: what could have been named; empty: nothing.
std::string Endpoint::domains_of(const EndpointOptions& options) const {
  EndpointOptions any = options;
  any.domain.clear();
  int error = 0;
  fi_info* const list = ask(any, FI_MSG, error);
  std::vector<std::string> known;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    // Without a provider each is named with its own.
    const std::string name =
        (options.provider.empty() ? std::string{info->fabric_attr->prov_name} + ":" : "") +
        info->domain_attr->name;
    if (std::ranges::find(known, name) == known.end()) {
      known.push_back(name);
    }
  }
  library_.freeinfo(list);
  std::string text;
  for (const std::string& name : known) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void Endpoint::take(const fi_info& found, const EndpointOptions& options) {
  info_ = library_.dupinfo(&found);
  provider_ = info_->fabric_attr->prov_name;
  domain_name_ = info_->domain_attr->name;
  inject_bytes_ = info_->tx_attr->inject_size;
  message_bytes_ = (options.message_bytes + kAlign - 1) / kAlign * kAlign;
}

/// Asks for what the driver does, and offers what it can do for the provider. What is chosen does
/// not depend on reads: those come with it, or not.
Result<> Endpoint::choose(const EndpointOptions& options) {
  int error = 0;
  fi_info* const list = ask(options, FI_MSG, error);
  const std::string wanted =
      (options.provider.empty() ? std::string{"any provider"} : "provider " + options.provider) +
      (options.domain.empty() ? "" : " on " + options.domain);
  const std::string domains = options.domain.empty() ? "" : domains_of(options);
  const std::string known = domains.empty() ? "" : "; the domains that it has are: " + domains;
  if (list == nullptr) {
    return Error{Errc::unsupported, "libfabric has no endpoint for messages in order of " + wanted +
                                        ": " + library_.strerror(-error) + known};
  }
  if (const fi_info* const found = first_fitting(list, options)) {
    take(*found, options);
  }
  library_.freeinfo(list);
  if (info_ == nullptr) {
    return Error{Errc::unsupported, "libfabric has no endpoint between hosts for messages of " +
                                        std::to_string(options.message_bytes) + " bytes of " +
                                        wanted + known};
  }
  if (!options.may_read) {
    return Done{};
  }
  EndpointOptions same = options;
  same.provider = provider_;
  same.domain = domain_name_;
  fi_info* const reading = ask(same, kReadCaps, error);
  if (const fi_info* const found = first_fitting(reading, same)) {
    library_.freeinfo(info_);
    take(*found, options);
    can_read_ = true;
    read_bytes_max_ = info_->ep_attr->max_msg_size;
  }
  library_.freeinfo(reading);
  return Done{};
}

/// The provider sockets stands still for ever if a receive buffer of the kernel fills up, as
/// load_library() tells. A third of the smallest that hosts allow (425,984 bytes) never does.
std::size_t Endpoint::bytes_under_way_max() const noexcept {
  return provider_ == "sockets" ? 128 << 10 : SIZE_MAX;
}

/// Of what was chosen. Providers of sockets name interfaces as domains, those of boards tell where
/// on the bus theirs is.
std::string Endpoint::device_name() const {
  const fid_nic* const board = info_->nic;
  if (board != nullptr && board->bus_attr != nullptr && board->bus_attr->bus_type == FI_BUS_PCI) {
    const fi_pci_attr& at = board->bus_attr->attr.pci;
    return fmt::format("bus/pci/devices/{:04x}:{:02x}:{:02x}.{:x}", at.domain_id, at.bus_id,
                       at.device_id, at.function_id);
  }
  const bool has_name =
      board != nullptr && board->device_attr != nullptr && board->device_attr->name != nullptr;
  const std::string name = has_name ? board->device_attr->name : domain_name_;
  return (provider_.starts_with("verbs") ? "class/infiniband/" : "class/net/") + name;
}

}  // namespace sterna::net::fabric
