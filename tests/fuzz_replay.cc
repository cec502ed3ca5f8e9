// Runs a fuzz target as a plain test: every file of a corpus folder, then a fixed number of random
// mutations of them, from a seed that is printed and can be given back.
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
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    std::ifstream file{entry.path(), std::ios::binary};
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

}  // namespace

// Arguments: corpus folder, then optionally the seed and the number of mutations.
int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 20261121;
  const std::uint64_t rounds = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 20000;
  std::printf("seed %llu, %llu mutations\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(rounds));
  std::mt19937_64 random{seed};
  const std::vector<Input> corpus = read_corpus(argc > 1 ? argv[1] : "");
  for (const Input& input : corpus) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const Input input = mutate(corpus[random() % corpus.size()], random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  return 0;
}
