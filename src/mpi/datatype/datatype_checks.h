// What a type must do, compared with its model (datatype_model.h). For tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/datatype_generator.h"
#include "mpi/datatype/external.h"

namespace sterna::mpi {

/// The memory around `count` instances, and where the buffer's address is in it.
struct Arena {
  std::vector<std::byte> bytes;
  std::int64_t origin = 0;

  explicit Arena(const std::vector<std::int64_t>& places) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (const std::int64_t place : places) {
      low = std::min(low, place);
      high = std::max(high, place + 1);
    }
    origin = -low;
    bytes.resize(static_cast<std::size_t>(high - low) + 1);
  }
  [[nodiscard]] std::byte* address() { return bytes.data() + origin; }
  [[nodiscard]] std::byte& at(std::int64_t place) {
    return bytes[static_cast<std::size_t>(origin + place)];
  }
};

inline void expect_shape(const Datatype& type, const Model& model) {
  EXPECT_EQ(type.bytes, model.bytes());
  EXPECT_EQ(type.lb, model.lb);
  EXPECT_EQ(type.extent, model.extent());
  EXPECT_EQ(type.true_lb, model.true_lb());
  EXPECT_EQ(type.true_lb + type.true_extent, model.true_ub());
  EXPECT_EQ(type.element_count, model.map.size());
}

inline void expect_packs(const Datatype& type, const Model& model, Generator& generator) {
  const auto count = static_cast<std::uint64_t>(generator.draw(0, 3));
  const std::vector<std::int64_t> places = model.places(count);
  Arena arena{places};
  for (std::byte& byte : arena.bytes) {
    byte = static_cast<std::byte>(generator.draw(0, 255));
  }
  const TypedBuffer buffer = TypedBuffer::of(arena.address(), static_cast<MPI_Count>(count), type);
  std::vector<std::byte> expected;
  for (const std::int64_t place : places) {
    expected.push_back(arena.at(place));
  }
  ASSERT_EQ(buffer.bytes(), expected.size());
  if (buffer.is_one_run() && !expected.empty()) {
    EXPECT_EQ(std::memcmp(buffer.first_byte(), expected.data(), expected.size()), 0);
  }
  for (int i = 0; i < 4; ++i) {  // Any part of the stream.
    const std::int64_t total = static_cast<std::int64_t>(expected.size());
    const std::int64_t offset = i == 0 ? 0 : generator.draw(0, total);
    const std::int64_t length = i == 0 ? total : generator.draw(0, total - offset);
    std::vector<std::byte> part(static_cast<std::size_t>(length));
    EXPECT_EQ(pack(buffer, static_cast<std::uint64_t>(offset), part),
              static_cast<std::uint64_t>(length));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + offset));
    Arena target{places};
    const TypedBuffer into = TypedBuffer::of(target.address(), static_cast<MPI_Count>(count), type);
    unpack(into, static_cast<std::uint64_t>(offset), part);
    Arena wanted{places};
    for (std::int64_t n = 0; n < length; ++n) {
      wanted.at(places[static_cast<std::size_t>(offset + n)]) = part[static_cast<std::size_t>(n)];
    }
    EXPECT_EQ(target.bytes, wanted.bytes);
  }
  std::vector<std::byte> gathered;
  std::uint64_t offset = 0;
  Run runs[3];
  for (std::uint32_t n = 0; (n = collect_runs(buffer, offset, runs)) != 0;) {
    for (const Run& run : std::span{runs, n}) {
      gathered.insert(gathered.end(), run.address, run.address + run.bytes);
    }
    EXPECT_EQ(gathered.size(), offset);
  }
  EXPECT_EQ(gathered, expected);
}

inline void expect_elements(const Datatype& type, const Model& model, Generator& generator) {
  std::vector<std::uint64_t> ends{0};
  for (int instance = 0; instance < 2; ++instance) {
    for (const ModelEntry& entry : model.map) {
      ends.push_back(ends.back() + sizes_of(entry.basic).bytes);
    }
  }
  const auto bytes =
      static_cast<std::uint64_t>(generator.draw(0, static_cast<std::int64_t>(ends.back())));
  const auto end = std::find(ends.begin(), ends.end(), bytes);
  EXPECT_EQ(count_elements(type, bytes),
            end == ends.end() ? kNotWhole : static_cast<std::uint64_t>(end - ends.begin()));
}

inline bool has_overlap(std::vector<std::int64_t> places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

/// All that is known of a type, against its model.
inline void expect_all(const Sample& sample, Generator& generator) {
  const Datatype& type = *find_datatype(sample.handle);
  expect_shape(type, sample.model);
  expect_packs(type, sample.model, generator);
  expect_elements(type, sample.model, generator);
  if (!has_overlap(sample.model.places(2))) {
    const std::vector<std::int64_t> places = sample.model.places(2);
    Arena from{places};
    Arena into{places};
    for (const std::int64_t place : places) {
      from.at(place) = static_cast<std::byte>(generator.draw(0, 63));  // No signalling numbers.
    }
    std::vector<std::byte> stream(2 * external_bytes(type));
    pack_external(TypedBuffer::of(from.address(), 2, type), stream.data());
    unpack_external(TypedBuffer::of(into.address(), 2, type), stream.data());
    std::vector<std::byte> again(stream.size());
    pack_external(TypedBuffer::of(into.address(), 2, type), again.data());
    EXPECT_EQ(stream, again);
    copy_typed(TypedBuffer::of(from.address(), 2, type),
               TypedBuffer::of(into.address(), 2, type));
    EXPECT_EQ(from.bytes, into.bytes);
  }
}

}  // namespace sterna::mpi
