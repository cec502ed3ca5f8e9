// Draws random nested datatypes, by every constructor, together with their models. For tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/datatype_model.h"
#include "mpi/datatype/recipe.h"

namespace sterna::mpi {

using Values = std::vector<std::int64_t>;

inline memory::Heap& heap() {
  return *memory::Heap::process();
}

inline MPI_Datatype handle_of(const Datatype* type) {
  return reinterpret_cast<MPI_Datatype>(const_cast<Datatype*>(type));
}

inline MPI_Datatype make(int combiner, const Values& values,
                         const std::vector<MPI_Datatype>& types) {
  Datatype* made = nullptr;
  EXPECT_EQ(create_datatype(heap(), {combiner, false, values, types}, made), MPI_SUCCESS);
  return handle_of(made);
}

struct Sample {
  MPI_Datatype handle;
  Model model;
};

/// Draws a type and its model together.
class Generator {
 public:
  /// Lists of displacements have up to so many blocks.
  explicit Generator(std::uint32_t seed, std::int64_t blocks_max = 5)
      : random_{seed}, blocks_max_{blocks_max} {}
  ~Generator() {
    for (const MPI_Datatype type : made_) {
      release_datatype(heap(), type);
    }
  }

  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random_);
  }

  Sample draw_type(int depth) {
    if (depth == 0) {
      const MPI_Datatype basics[] = {
          MPI_CHAR,       MPI_SHORT,     MPI_INT,         MPI_DOUBLE,
          MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
          MPI_2INT};
      const MPI_Datatype handle = basics[draw(0, 8)];
      return {handle, Model::of(*find_datatype(handle))};
    }
    switch (draw(0, 9)) {
      case 0:
        return contiguous(draw_type(depth - 1));
      case 1:
        return vector(draw_type(depth - 1));
      case 2:
        return hvector(draw_type(depth - 1));
      case 3:
        return indexed(draw_type(depth - 1), draw(0, 1) == 0);
      case 4:
        return indexed_block(draw_type(depth - 1), draw(0, 1) == 0);
      case 5:
        return structure(depth);
      case 6:
        return resized(draw_type(depth - 1));
      case 7:
        return subarray(draw_type(depth - 1));
      case 8:
        return darray(draw_type(depth - 1));
      default: {
        const Sample child = draw_type(depth - 1);
        return finish(MPI_COMBINER_DUP, {}, {child.handle}, child.model);
      }
    }
  }

 private:
  Sample finish(int combiner, const Values& values, const std::vector<MPI_Datatype>& types,
                Model model) {
    model.pad();
    made_.push_back(make(combiner, values, types));
    return {made_.back(), model};
  }

  static void add_block(Model& into, const Model& child, std::int64_t length, std::int64_t at) {
    for (std::int64_t i = 0; i < length; ++i) {
      into.add(child, at + i * child.extent());
    }
  }

  Sample contiguous(const Sample& child) {
    const std::int64_t count = draw(0, 4);
    Model model;
    add_block(model, child.model, count, 0);
    return finish(MPI_COMBINER_CONTIGUOUS, {count}, {child.handle}, model);
  }

  Sample vector(const Sample& child) {
    const Values values{draw(0, 4), draw(0, 3), draw(-4, 6)};
    Model model;
    for (std::int64_t i = 0; i < values[0]; ++i) {
      add_block(model, child.model, values[1], i * values[2] * child.model.extent());
    }
    return finish(MPI_COMBINER_VECTOR, values, {child.handle}, model);
  }

  Sample hvector(const Sample& child) {
    const Values values{draw(0, 4), draw(0, 3), draw(-60, 90)};
    Model model;
    for (std::int64_t i = 0; i < values[0]; ++i) {
      add_block(model, child.model, values[1], i * values[2]);
    }
    return finish(MPI_COMBINER_HVECTOR, values, {child.handle}, model);
  }

  Sample indexed(const Sample& child, bool by_bytes) {
    const std::int64_t count = draw(0, blocks_max_);
    const std::int64_t length_max = draw(1, 3);  // Few different ones make blocks alike.
    Values values{count};
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(draw(length_max == 1 ? 1 : 0, length_max));
    }
    Model model;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(by_bytes ? draw(-50, 90) : draw(-3, 9));
      const std::int64_t unit = by_bytes ? 1 : child.model.extent();
      add_block(model, child.model, values[static_cast<std::size_t>(1 + i)], values.back() * unit);
    }
    return finish(by_bytes ? MPI_COMBINER_HINDEXED : MPI_COMBINER_INDEXED, values, {child.handle},
                  model);
  }

  Sample indexed_block(const Sample& child, bool by_bytes) {
    const std::int64_t count = draw(0, blocks_max_);
    Values values{count, draw(0, 3)};
    Model model;
    const bool is_regular = draw(0, 1) == 0;
    const std::int64_t step = draw(-3, 8);
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(is_regular ? i * step : draw(-3, 30));
      const std::int64_t unit = by_bytes ? 1 : child.model.extent();
      add_block(model, child.model, values[1], values.back() * unit);
    }
    return finish(by_bytes ? MPI_COMBINER_HINDEXED_BLOCK : MPI_COMBINER_INDEXED_BLOCK, values,
                  {child.handle}, model);
  }

  Sample structure(int depth) {
    const std::int64_t count = draw(0, 4);
    Values values{count};
    std::vector<MPI_Datatype> types;
    std::vector<Model> models;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(draw(0, 3));
      const Sample child = draw_type(static_cast<int>(draw(0, depth - 1)));
      types.push_back(child.handle);
      models.push_back(child.model);
    }
    Model model;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(draw(-50, 120));
      add_block(model, models[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(1 + i)],
                values.back());
    }
    return finish(MPI_COMBINER_STRUCT, values, types, model);
  }

  Sample resized(const Sample& child) {
    const Values values{draw(-20, 20), draw(-10, 100)};
    Model model = child.model;
    model.lb = values[0];
    model.ub = values[0] + values[1];
    model.has_markers = true;
    return finish(MPI_COMBINER_RESIZED, values, {child.handle}, model);
  }

  /// Adds the child at every index of `chosen`, dimension by dimension, slowest first.
  void add_array(Model& model, const Model& child, const std::vector<Values>& chosen,
                 const Values& sizes, bool is_c) {
    const std::size_t dimensions = sizes.size();
    std::vector<std::size_t> index(dimensions, 0);
    std::size_t total = 1;
    for (const Values& places : chosen) {
      total *= places.size();
    }
    for (std::size_t n = 0; n < total; ++n) {
      std::size_t rest = n;
      std::int64_t place = 0;
      std::int64_t stride = 1;
      for (std::size_t i = 0; i < dimensions; ++i) {
        const std::size_t d = is_c ? dimensions - 1 - i : i;
        place += chosen[d][rest % chosen[d].size()] * stride;
        rest /= chosen[d].size();
        stride *= sizes[d];
      }
      model.add(child, place * child.extent());
    }
    std::int64_t whole = child.extent();
    for (const std::int64_t size : sizes) {
      whole *= size;
    }
    model.lb = 0;
    model.ub = whole;
    model.has_markers = true;
  }

  Sample subarray(const Sample& child) {
    const std::int64_t dimensions = draw(1, 3);
    Values sizes;
    Values parts;
    Values starts;
    std::vector<Values> chosen;
    for (std::int64_t d = 0; d < dimensions; ++d) {
      sizes.push_back(draw(1, 4));
      parts.push_back(draw(1, sizes.back()));
      starts.push_back(draw(0, sizes.back() - parts.back()));
      chosen.emplace_back();
      for (std::int64_t i = 0; i < parts.back(); ++i) {
        chosen.back().push_back(starts.back() + i);
      }
    }
    const bool is_c = draw(0, 1) == 0;
    Values values{dimensions};
    for (const Values* list : {&sizes, &parts, &starts}) {
      values.insert(values.end(), list->begin(), list->end());
    }
    values.push_back(is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN);
    Model model;
    add_array(model, child.model, chosen, sizes, is_c);
    return finish(MPI_COMBINER_SUBARRAY, values, {child.handle}, model);
  }

  Sample darray(const Sample& child) {
    const std::int64_t dimensions = draw(1, 3);
    Values sizes;
    Values distributions;
    Values arguments;
    Values grid;
    std::int64_t processes = 1;
    for (std::int64_t d = 0; d < dimensions; ++d) {
      sizes.push_back(draw(1, 7));
      distributions.push_back(draw(MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC));
      grid.push_back(distributions.back() == MPI_DISTRIBUTE_NONE ? 1 : draw(1, 3));
      arguments.push_back(distributions.back() == MPI_DISTRIBUTE_CYCLIC && draw(0, 1) == 0
                              ? draw(1, 3)
                              : std::int64_t{MPI_DISTRIBUTE_DFLT_DARG});
      processes *= grid.back();
    }
    const std::int64_t rank = draw(0, processes - 1);
    std::vector<Values> chosen;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      std::int64_t slower = 1;
      for (std::size_t later = d + 1; later < sizes.size(); ++later) {
        slower *= grid[later];
      }
      const std::int64_t coordinate = rank / slower % grid[d];
      const bool is_default = arguments[d] == MPI_DISTRIBUTE_DFLT_DARG;
      const std::int64_t length = distributions[d] == MPI_DISTRIBUTE_CYCLIC
                                      ? (is_default ? 1 : arguments[d])
                                      : (sizes[d] + grid[d] - 1) / grid[d];
      chosen.emplace_back();
      for (std::int64_t i = 0; i < sizes[d]; ++i) {
        if (i / length % grid[d] == coordinate) {
          chosen.back().push_back(i);
        }
      }
    }
    const bool is_c = draw(0, 1) == 0;
    Values values{processes, rank, dimensions};
    for (const Values* list : {&sizes, &distributions, &arguments, &grid}) {
      values.insert(values.end(), list->begin(), list->end());
    }
    values.push_back(is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN);
    Model model;
    add_array(model, child.model, chosen, sizes, is_c);
    return finish(MPI_COMBINER_DARRAY, values, {child.handle}, model);
  }

  std::mt19937 random_;
  std::int64_t blocks_max_;
  std::vector<MPI_Datatype> made_;
};

}  // namespace sterna::mpi
