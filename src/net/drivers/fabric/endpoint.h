// One endpoint of libfabric, of the kind that sends messages to many peers without connections
// (FI_EP_RDM), with its address vector and completion queue.
//
// No function may be called while another one is: the owner has a lock for all of them. The
// provider is told so (FI_THREAD_DOMAIN), so it needs no locks of its own, and the sender that runs
// beside the poller is right with every provider, whatever it says of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "net/drivers/fabric/library.h"

namespace sterna::net::fabric {

/// What the provider has under way. The context comes first: the provider writes into it.
struct Operation {
  fi_context2 context{};
  enum class Kind : std::uint8_t { message, read } kind = Kind::message;
};

/// A message on its way, out or in.
struct Buffer : Operation {
  std::byte* memory = nullptr;
  void* registration = nullptr;  // What the provider calls it by; null where it wants none.
  std::uint32_t owner = 0;       // The peer's node: of a buffer to send.
  std::uint32_t bytes = 0;       // To send; for a receive, what came.
  bool is_send = false;
};

/// Memory of the program that the provider knows, for as long as one transfer takes.
struct Region {
  fid_mr* registration = nullptr;
  std::uint64_t address = 0;  // For a peer that reads: where it begins, and by which key.
  std::uint64_t key = 0;
};

/// Memory of a peer, as it says.
struct RemoteRegion {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

/// A read of a peer's memory. Stays where it is from start_read() to its completion.
struct Read : Operation {
  Read() noexcept { kind = Kind::read; }
  std::span<std::byte> into;
  Region local;  // Of `into`, where the provider asks for it.
};

struct EndpointOptions {
  std::string provider;
  std::string domain;
  bool may_read = false;  // From a peer's memory, if the provider can.
  std::uint32_t message_bytes = 0;
  std::uint32_t completions_max = 0;  // Operations under way at once.
};

class Endpoint {
 public:
  /// Fails with unsupported where libfabric, or a provider that does what is needed, is absent.
  [[nodiscard]] static Result<std::unique_ptr<Endpoint>> open(const EndpointOptions& options);
  /// What it would be opened on, as topology::processors_near() names devices; empty: it would
  /// fail, or the provider does not say.
  [[nodiscard]] static std::string device(const EndpointOptions& options);
  /// See boards(), fabric/boards.h.
  [[nodiscard]] static std::vector<std::string> boards();
  /// Whether one could read from peers (can_read), without opening it. Fails as open() does.
  [[nodiscard]] static Result<bool> probe(const EndpointOptions& options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] const std::string& provider() const noexcept { return provider_; }
  [[nodiscard]] const std::string& domain() const noexcept { return domain_name_; }
  [[nodiscard]] std::span<const std::byte> name() const noexcept { return name_; }
  /// Messages up to so many bytes are sent without a completion.
  [[nodiscard]] std::size_t inject_bytes() const noexcept { return inject_bytes_; }
  /// About so many bytes of messages to a peer may be under way.
  [[nodiscard]] std::size_t bytes_under_way_max() const noexcept;
  /// Readable when there may be something to poll, while may_wait() has said so; -1: none.
  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Adds `count` buffers of the largest message at the end of `to`. Fails with out_of_memory, or
  /// as the provider says.
  [[nodiscard]] Result<> make_buffers(std::uint32_t count, bool is_send, std::uint32_t owner,
                                      std::vector<Buffer*>& to);

  /// How the provider calls a peer by its name().
  [[nodiscard]] Result<fi_addr_t> insert(std::span<const std::byte> name);

  /// The process of that name was killed: removes what its provider would have removed.
  void clean_after(std::span<const std::byte> name) noexcept;
  /// Closes it: the provider lets go of all memory. From then on nothing is sent, received or read:
  /// such calls fail, poll() finds nothing.
  void shut() noexcept;

  enum class Posted : std::uint8_t { done, again, failed };
  /// `done`: the buffer comes back by poll(), or it was injected: is free again, `was_injected`.
  [[nodiscard]] Posted send(Buffer& buffer, fi_addr_t to, bool& was_injected) noexcept;
  [[nodiscard]] Posted receive(Buffer& buffer) noexcept;
  /// Why the last one failed.
  [[nodiscard]] std::string failure() const;

  // memory.cc: bytes that go from the memory of one program into that of another one.

  /// Peers' memory can be read, and they can read ours.
  [[nodiscard]] bool can_read() const noexcept { return can_read_; }
  /// At most so many bytes in one read.
  [[nodiscard]] std::uint64_t read_bytes_max() const noexcept { return read_bytes_max_; }
  /// Peers that are told of it may read `memory`, nothing else, until close(). Fails as the
  /// provider says.
  [[nodiscard]] Result<Region> expose(std::span<const std::byte> memory);
  /// Registers where it goes, if that is asked for, and reads as many bytes from `peer`. `done`:
  /// its completion comes by poll(); else nothing happened.
  [[nodiscard]] Posted start_read(Read& read, fi_addr_t peer, RemoteRegion from);
  /// Nobody reaches it any more. One that is closed or empty may be given again.
  void close(Region& region) noexcept;

  struct Completion {
    Buffer* buffer = nullptr;  // Null: it is `read`.
    int error = 0;             // 0: it is done.
    Read* read = nullptr;
  };
  /// Moves everything on; returns how many completions there are.
  [[nodiscard]] std::uint32_t poll(std::span<Completion> completions) noexcept;
  /// Whether one may wait for fd() now.
  [[nodiscard]] bool may_wait() noexcept;
  [[nodiscard]] std::string error_text(int error) const;

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<Buffer[]> buffers;
    fid_mr* registration = nullptr;
  };
  explicit Endpoint(const Library& library) noexcept : library_{library} {}
  // provider.cc
  Result<> choose(const EndpointOptions& options);
  fi_info* ask(const EndpointOptions& options, std::uint64_t caps, int& error) const;
  std::string domains_of(const EndpointOptions& options) const;
  [[nodiscard]] std::string device_name() const;
  void take(const fi_info& found, const EndpointOptions& options);
  Result<> build(const EndpointOptions& options);
  Result<> open_queue(std::size_t size);
  Result<> register_slab(Slab& slab, std::size_t bytes);
  Result<Region> register_region(std::span<const std::byte> memory, std::uint64_t access);
  Posted posted(long result) noexcept;

  const Library& library_;
  std::string provider_;
  std::string domain_name_;
  std::vector<std::byte> name_;
  std::size_t message_bytes_ = 0;
  std::size_t inject_bytes_ = 0;
  bool can_read_ = false;
  std::uint64_t read_bytes_max_ = 0;
  int fd_ = -1;
  long last_error_ = 0;
  std::uint64_t next_key_ = 1;  // Of registrations, where the provider chooses none.
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  std::vector<Slab> slabs_;
  std::vector<fid_mr*> regions_;  // Open, in no order.
};

}  // namespace sterna::net::fabric
