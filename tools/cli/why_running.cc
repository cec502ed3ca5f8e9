// `sterna info --why net PEER SIZE --job ID`: what a process of a running job says.
#include <charconv>

#include <fmt/format.h>
#include <unistd.h>

#include "launch/job_client.h"
#include "net/explanation.h"
#include "runtime/status_folder.h"
#include "tools/cli/why.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

Result<std::uint32_t> read_rank(const std::string& text) {
  std::uint32_t rank = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, rank);
  if (error != std::errc{} || rest != end) {
    return Error{Errc::invalid_argument,
                 fmt::format("with --job, PEER is the number of a rank, as sterna ps prints it; "
                             "'{}' is none",
                             text)};
  }
  return rank;
}

}  // namespace

Result<json> explain_running(const std::vector<std::string>& question, unsigned job,
                             std::optional<std::uint32_t> from) {
  if (question.size() != 3 || question[0] != "net") {
    return Error{Errc::invalid_argument,
                 "--why takes: net RANK SIZE with --job, as in --why net 1 64K --job 4242"};
  }
  Result<std::uint32_t> peer = read_rank(question[1]);
  if (!peer) {
    return peer.error();
  }
  Result<std::uint64_t> bytes = read_size(question[2]);
  if (!bytes) {
    return bytes.error();
  }
  if (bytes.value() > net::kExplainedBytesMax) {
    return Error{Errc::invalid_argument, "no message is longer than a terabyte"};
  }
  Result<std::string> folder = runtime::status_folder();
  if (!folder) {
    return Error{Errc::unreachable, folder.error().text};
  }
  const std::string path = launch::job_socket(folder.value(), job);
  if (::access(path.c_str(), F_OK) != 0) {
    return Error{Errc::unreachable, fmt::format("no job {} is running; sterna ps lists them", job)};
  }
  if (path.find("/program-") != std::string::npos) {
    return Error{Errc::unreachable,
                 fmt::format("program {} runs alone, without a launcher: it has no peers", job)};
  }
  const std::uint32_t asked = from.value_or(peer.value() == 0 ? 1 : 0);
  const std::optional<std::string> told =
      launch::ask(path, fmt::format("why {} {} {}\n", asked, peer.value(), bytes.value()));
  json way = told ? json::parse(*told, nullptr, false) : json{};
  if (!way.is_object()) {
    return Error{
        Errc::unreachable,
        ::access(path.c_str(), F_OK) == 0
            ? fmt::format("job {} does not answer; is it stopped, or of another version?", job)
            : fmt::format("job {} has ended", job)};
  }
  if (way.contains("error")) {
    return Error{Errc::unreachable, fmt::format("job {}: {}", job, way.value("error", ""))};
  }
  way["job"] = job;
  return way;
}

}  // namespace sterna::cli
