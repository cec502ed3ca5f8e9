// Moves a paused rank to a second process of the same executable, by its live bytes.
#pragma once

#include <string>
#include <vector>

#include "program/testhost/test_host.h"

namespace sterna::program {

/// The other end: a process that runs what it is sent. Ends with its object.
class OtherProcess {
 public:
  /// Starts this executable again with what receive_and_run() needs.
  OtherProcess(const std::string& program, std::uint32_t rank_count);
  ~OtherProcess();

  /// Sends the paused rank and forgets it here.
  void send(TestHost& host, std::uint32_t rank);
  /// The rank was sent: it runs there to its next pause or its end. True: it paused, came back and
  /// goes on here. False: it has ended; its outcome is in the host.
  bool run_and_return(TestHost& host, std::uint32_t rank);

 private:
  int fd_ = -1;
  int process_ = -1;
};

/// Runs one rank of a test program; at each pause it goes to the other process, runs there to the
/// next, comes back and runs here to the one after. Returns how often it moved.
int run_on_two(TestHost& host, const std::string& name, std::vector<std::string> arguments);

/// main of the second process. Returns its exit status.
int receive_and_run(int fd, const std::string& program, std::uint32_t rank_count);

}  // namespace sterna::program
