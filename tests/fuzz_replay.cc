// Runs a fuzz target as a plain test: every file of a corpus folder, then a fixed number of random
// mutations of them, from a seed that is printed and can be given back; or for a time, from one
// seed after the other.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace {

using Input = std::vector<std::uint8_t>;

std::vector<Input> read_corpus(const char* folder) {
  std::vector<Input> inputs{Input{}};
  if (!std::filesystem::exists(folder)) {
    return inputs;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // A folder has no order, and a seed is to mean the same everywhere.
  for (const auto& path : paths) {
    std::ifstream file{path, std::ios::binary};
    inputs.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
  }
  return inputs;
}

Input mutate(Input input, std::mt19937_64& random) {
  const auto changes = 1 + random() % 8;
  for (std::uint64_t i = 0; i < changes; ++i) {
    const auto byte = static_cast<std::uint8_t>(random());
    switch (random() % 4) {
      case 0:
        input.push_back(byte);
        break;
      case 1:
        input.resize(input.empty() ? 0 : random() % input.size());
        break;
      default:
        if (!input.empty()) {
          input[random() % input.size()] = byte;
        }
    }
  }
  return input;
}

/// Of one seed; that is printed first: who fails says nothing any more.
void run_mutations(const std::vector<Input>& corpus, std::uint64_t seed, std::uint64_t count) {
  std::printf("seed %llu, %llu mutations\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count));
  std::fflush(stdout);
  std::mt19937_64 random{seed};
  for (std::uint64_t i = 0; i < count; ++i) {
    const Input input = mutate(corpus[random() % corpus.size()], random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

/// A number that the environment gives, or an argument.
std::uint64_t number_of(const char* text, std::uint64_t otherwise) {
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace

// Arguments: corpus folder, then optionally the seed and the number of mutations, which may also be
// STERNA_FUZZ_SEED and STERNA_FUZZ_MUTATIONS; with STERNA_FUZZ_SECONDS=N the next seeds follow for
// so long (./dev soak). A failure is that of the last seed printed.
int main(int argc, char** argv) {
  const char* const given = argc > 2 ? argv[2] : std::getenv("STERNA_FUZZ_SEED");
  std::uint64_t seed = number_of(given, 20261121);
  const std::uint64_t count =
      number_of(argc > 3 ? argv[3] : std::getenv("STERNA_FUZZ_MUTATIONS"), 20000);
  const std::chrono::seconds limit{number_of(std::getenv("STERNA_FUZZ_SECONDS"), 0)};
  const std::vector<Input> corpus = read_corpus(argc > 1 ? argv[1] : "");
  for (const Input& input : corpus) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    run_mutations(corpus, seed++, count);
  } while (std::chrono::steady_clock::now() < end);
  return 0;
}
