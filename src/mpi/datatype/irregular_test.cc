// Types of many irregular blocks, which are kept as places: against the naive list of their
// elements, with lists that end at every limit; and how little they are.
#include <cstdlib>

#include <gtest/gtest.h>

#include "mpi/datatype/datatype_checks.h"

namespace sterna::mpi {
namespace {

std::uint32_t first_seed() {
  const char* given = std::getenv("STERNA_TEST_SEED");
  return given == nullptr ? 1U : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}

TEST(IrregularType, RandomListsBehaveAsTheirTypeMaps) {
  for (std::uint32_t seed = first_seed(); seed < first_seed() + 600; ++seed) {
    SCOPED_TRACE("STERNA_TEST_SEED=" + std::to_string(seed));
    Generator generator{seed, 80};
    const Sample sample = generator.draw_type(static_cast<int>(generator.draw(1, 3)));
    if (sample.model.map.size() > 4000) {
      continue;
    }
    expect_all(sample, generator);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

/// A list of blocks of a type, mostly in the way of `kind`: alike, unlike, in even runs; with gaps,
/// sometimes adjacent, sometimes backwards.
Sample draw_list(Generator& generator, MPI_Datatype child, const Model& child_model,
                 std::int64_t count) {
  const std::int64_t kind = generator.draw(0, 3);
  Values values{count};
  Values displacements;
  Model model;
  std::int64_t at = generator.draw(-200, 200);
  std::int64_t step = 3;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = kind == 0 ? 1 : kind == 1 ? generator.draw(0, 4) : 2;
    values.push_back(length);
    if (kind == 3 && generator.draw(0, 40) == 0) {
      step = generator.draw(2, 6);
    }
    displacements.push_back(at);
    for (std::int64_t n = 0; n < length; ++n) {
      model.add(child_model, (at + n) * child_model.extent());
    }
    at += kind == 3 ? step : length + generator.draw(generator.draw(0, 9) == 0 ? -6 : 0, 3);
  }
  values.insert(values.end(), displacements.begin(), displacements.end());
  model.pad();
  return {make(MPI_COMBINER_INDEXED, values, {child}), model};
}

TEST(IrregularType, LongListsBehaveAsTheirTypeMaps) {
  for (std::uint32_t seed = first_seed(); seed < first_seed() + 120; ++seed) {
    SCOPED_TRACE("STERNA_TEST_SEED=" + std::to_string(seed));
    Generator generator{seed};
    const MPI_Datatype vector = make(MPI_COMBINER_VECTOR, {2, 1, 2}, {MPI_SHORT});
    const MPI_Datatype pair =
        make(MPI_COMBINER_STRUCT, {2, 1, 1, 0, 8}, {MPI_CHAR, MPI_DOUBLE});
    Model vector_model;
    vector_model.add(Model::of(*find_datatype(MPI_SHORT)), 0);
    vector_model.add(Model::of(*find_datatype(MPI_SHORT)), 4);
    Model pair_model;
    pair_model.add(Model::of(*find_datatype(MPI_CHAR)), 0);
    pair_model.add(Model::of(*find_datatype(MPI_DOUBLE)), 8);
    const Sample children[] = {{MPI_CHAR, Model::of(*find_datatype(MPI_CHAR))},
                               {MPI_INT, Model::of(*find_datatype(MPI_INT))},
                               {vector, vector_model},
                               {pair, pair_model}};
    const Sample& child = children[generator.draw(0, 3)];
    const std::int64_t counts[] = {7, 8, 9, 31, 32, 33, 511, 512, 513, 1100};
    const Sample sample =
        draw_list(generator, child.handle, child.model, counts[generator.draw(0, 9)]);
    expect_all(sample, generator);
    for (const MPI_Datatype type : {sample.handle, vector, pair}) {
      release_datatype(heap(), type);
    }
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

/// The runs of blocks of bytes from byte `skip` of their stream on.
void expect_runs(const TypedBuffer& buffer, const Values& lengths, const Values& displacements,
                 std::uint64_t skip) {
  std::uint64_t offset = skip;
  Run runs[5];
  std::vector<Run> all;
  while (const std::uint32_t taken = collect_runs(buffer, offset, runs)) {
    all.insert(all.end(), runs, runs + taken);
  }
  std::size_t next = 0;
  std::uint64_t within = 0;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    auto bytes = static_cast<std::uint64_t>(lengths[n]);
    const std::uint64_t cut = std::min(skip, bytes);
    skip -= cut;
    bytes -= cut;
    if (bytes == 0) {
      continue;
    }
    ASSERT_LT(next, all.size());
    EXPECT_EQ(all[next].address + within, buffer.address + displacements[n] + cut);
    within += bytes;  // A run may hold several blocks.
    EXPECT_LE(within, all[next].bytes);
    if (within == all[next].bytes) {
      within = 0;
      ++next;
    }
  }
  EXPECT_EQ(next, all.size());
}

// Nothing of them is touched: only the runs are compared.
TEST(IrregularType, BlocksThatAreFarApartKeepTheirPlaces) {
  for (std::uint32_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    SCOPED_TRACE("STERNA_TEST_SEED=" + std::to_string(seed));
    Generator generator{seed};
    const std::int64_t count = generator.draw(1, 700);
    const bool are_alike = generator.draw(0, 1) == 0;
    Values lengths;
    Values displacements;
    std::int64_t far = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      lengths.push_back(are_alike ? 4 : generator.draw(1, 9));
      const std::int64_t jump = std::int64_t{1} << generator.draw(29, 35);
      far += generator.draw(0, 30) == 0 ? jump * generator.draw(-1, 1) : 0;
      displacements.push_back(far + 10 * i + generator.draw(0, 1));
    }
    Values values{count};
    values.insert(values.end(), lengths.begin(), lengths.end());
    values.insert(values.end(), displacements.begin(), displacements.end());
    const MPI_Datatype type = make(MPI_COMBINER_HINDEXED, values, {MPI_CHAR});
    const auto base = std::uintptr_t{1} << 46;
    const TypedBuffer buffer{reinterpret_cast<std::byte*>(base), 1, find_datatype(type)};
    for (int i = 0; i < 4; ++i) {
      expect_runs(buffer, lengths, displacements,
                  static_cast<std::uint64_t>(
                      i == 0 ? 0 : generator.draw(0, static_cast<std::int64_t>(buffer.bytes()))));
    }
    release_datatype(heap(), type);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

TEST(IrregularType, ListsAreAFewBytesABlock) {
  Values places{10'000, 1};
  Values lists{10'000};
  for (std::int64_t i = 0; i < 10'000; ++i) {
    places.push_back(3 * i + i * i % 2 + i % 7 / 3);
    lists.push_back(1 + i * i % 3);
  }
  for (std::int64_t i = 0; i < 10'000; ++i) {
    lists.push_back(5 * i + i * i % 2);
  }
  const MPI_Datatype alike = make(MPI_COMBINER_INDEXED_BLOCK, places, {MPI_DOUBLE});
  const MPI_Datatype unlike = make(MPI_COMBINER_INDEXED, lists, {MPI_DOUBLE});
  const MPI_Datatype records = make(MPI_COMBINER_STRUCT, {2, 3, 1, 0, 24}, {MPI_DOUBLE, MPI_INT});
  const MPI_Datatype nested = make(MPI_COMBINER_INDEXED_BLOCK, places, {records});
  const Plan& first = find_datatype(alike)->copies;
  EXPECT_EQ(first.loop_count, 1U);
  EXPECT_EQ(first.place_count, 10'000U);
  const Plan& second = find_datatype(unlike)->copies;
  EXPECT_LE(second.loop_count, 30U);
  EXPECT_LE(second.place_count, 20'100U);
  const Datatype& third = *find_datatype(nested);
  EXPECT_LE(third.elements.loop_count, 4U);
  EXPECT_EQ(third.copies.top_count, 1U);
  EXPECT_EQ(third.copies.loops[third.copies.top_first].block_bytes, 28U)
      << "the members of a record are one block";
  for (const MPI_Datatype type : {alike, unlike, records, nested}) {
    release_datatype(heap(), type);
  }
}

TEST(IrregularType, SumsThatDoNotFitAreRefused) {
  const std::int64_t huge = std::int64_t{1} << 62;
  Values values{20};
  for (std::int64_t i = 0; i < 20; ++i) {
    values.push_back(1);
  }
  for (std::int64_t i = 0; i < 20; ++i) {
    values.push_back(i * i);
  }
  values.back() = huge;
  Datatype* made = nullptr;
  const MPI_Datatype child = MPI_INT;
  EXPECT_EQ(create_datatype(heap(), {MPI_COMBINER_INDEXED, false, values, {&child, 1}}, made),
            MPI_ERR_VALUE_TOO_LARGE);
  values[1] = huge;
  values.back() = 400;
  EXPECT_EQ(create_datatype(heap(), {MPI_COMBINER_INDEXED, false, values, {&child, 1}}, made),
            MPI_ERR_VALUE_TOO_LARGE);
}

}  // namespace
}  // namespace sterna::mpi
