// For tests and benchmarks: the launcher's part of a job on one host, in this process; what it
// gives works in processes forked from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "net/drivers/shm/segment.h"
#include "net/drivers/sim/sim.h"
#include "net/opening/bootstrap.h"

namespace sterna::net {

class TestJob {
 public:
  explicit TestJob(std::uint32_t node_count, std::uint64_t segment_bytes = shm::kSegmentBytes)
      : sim_network_{{.node_count = node_count,
                      .clock = &clock_,
                      .lent_bytes_max = 8 << 20,
                      .packet_bytes_max = 16 << 10,
                      .channel_packets_max = 256}} {
    host_.segment_fd = ::memfd_create("sterna-test", MFD_CLOEXEC);
    host_.segment_bytes = segment_bytes;
    check(::ftruncate(host_.segment_fd, static_cast<off_t>(node_count * segment_bytes)) == 0,
          "the test's memory has room");
    for (std::uint32_t i = 0; i < node_count; ++i) {
      host_.nodes.push_back(i);
      host_.bell_fds.push_back(::eventfd(0, EFD_CLOEXEC));
    }
    map_.node_count = node_count;
    map_.rank_count = node_count;
    map_.job_id = static_cast<std::uint64_t>(::getpid());
    map_.secret.fill(std::byte{42});
    map_.host_of_node.assign(node_count, "here");
    for (std::uint32_t i = 0; i < node_count; ++i) {
      map_.node_of_rank.push_back(i);
    }
    for (std::uint32_t i = 0; i < node_count; ++i) {
      nodes_.push_back(std::make_unique<Node>(*this, i));
    }
  }
  ~TestJob() {
    ::close(host_.segment_fd);
    for (const int bell : host_.bell_fds) {
      ::close(bell);
    }
  }
  TestJob(const TestJob&) = delete;
  TestJob& operator=(const TestJob&) = delete;

  /// What drivers under the decorator `cut` look at.
  [[nodiscard]] LinkSwitch& links() noexcept { return sim_network_.links(); }
  [[nodiscard]] Bootstrap& node(std::uint32_t index) { return *nodes_[index]; }
  /// The same on the simulated network of this job, for kSimDriver only.
  [[nodiscard]] Bootstrap& simulated_node(std::uint32_t index) {
    JobMap map = map_;
    map.node_index = index;
    simulated_.push_back(std::make_unique<SimBootstrap>(sim_network_, std::move(map)));
    return *simulated_.back();
  }
  /// To be changed before a node's driver opens.
  [[nodiscard]] JobMap& map_of(std::uint32_t index) { return nodes_[index]->map; }

 private:
  struct Node final : Bootstrap {
    Node(TestJob& of, std::uint32_t index) : of_job{of}, host_share{&of.host_}, map{of.map_} {
      map.node_index = index;
    }
    const JobMap& job() const noexcept override { return map; }
    const HostShare& host() const noexcept override { return *host_share; }
    Result<std::vector<std::vector<std::byte>>> exchange(
        std::span<const std::byte>) noexcept override {
      return Errc::unsupported;  // Tests pass the addresses themselves.
    }
    const LinkSwitch* links() const noexcept override { return &of_job.links(); }
    TestJob& of_job;
    HostShare* host_share;
    JobMap map;
  };

  HostShare host_;
  JobMap map_;
  std::vector<std::unique_ptr<Node>> nodes_;
  MonotonicClock clock_;
  SimNetwork sim_network_;
  std::vector<std::unique_ptr<SimBootstrap>> simulated_;
};

}  // namespace sterna::net
