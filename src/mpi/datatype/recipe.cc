// How the arguments of a constructor are spread over the arrays of MPI_Type_get_contents;
// predefined types by class, size and parts.
#include "mpi/datatype/recipe.h"

namespace sterna::mpi {
namespace {

/// How many values of the int form are addresses; they stand at the end.
std::uint32_t address_values(const Recipe& recipe) noexcept {
  const auto count = recipe.value_count == 0 ? 0 : static_cast<std::uint32_t>(recipe.values[0]);
  switch (recipe.combiner) {
    case MPI_COMBINER_HVECTOR:
      return 1;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case MPI_COMBINER_STRUCT:
      return count;
    case MPI_COMBINER_RESIZED:
      return 2;
    default:
      return 0;
  }
}

/// In the large form: a value that stays an int.
bool is_int_in_large_form(const Recipe& recipe, std::uint32_t index) noexcept {
  switch (recipe.combiner) {
    case MPI_COMBINER_SUBARRAY:
      return index == 0 || index + 1 == recipe.value_count;
    case MPI_COMBINER_DARRAY: {
      const auto dimensions = static_cast<std::uint32_t>(recipe.values[2]);
      return index < 3 || index >= 3 + dimensions;
    }
    default:
      return false;
  }
}

}  // namespace

ValueKind kind_of_value(const Recipe& recipe, std::uint32_t index) noexcept {
  if (recipe.is_large) {
    return is_int_in_large_form(recipe, index) ? ValueKind::integer : ValueKind::large;
  }
  return index < recipe.value_count - address_values(recipe) ? ValueKind::integer
                                                             : ValueKind::address;
}

Envelope envelope_of(const Recipe& recipe) noexcept {
  Envelope envelope;
  const bool is_kind = recipe.combiner == MPI_COMBINER_F90_INTEGER ||
                       recipe.combiner == MPI_COMBINER_F90_REAL ||
                       recipe.combiner == MPI_COMBINER_F90_COMPLEX;
  envelope.type_count = is_kind ? 0 : recipe.type_count;
  for (std::uint32_t i = 0; i < recipe.value_count; ++i) {
    switch (kind_of_value(recipe, i)) {
      case ValueKind::integer:
        ++envelope.integer_count;
        break;
      case ValueKind::address:
        ++envelope.address_count;
        break;
      case ValueKind::large:
        ++envelope.large_count;
        break;
    }
  }
  return envelope;
}

MPI_Datatype match_size(int type_class, int bytes) noexcept {
  switch (type_class) {
    case MPI_TYPECLASS_INTEGER:
      switch (bytes) {
        case 1:
          return MPI_INTEGER1;
        case 2:
          return MPI_INTEGER2;
        case 4:
          return MPI_INTEGER4;
        case 8:
          return MPI_INTEGER8;
        case 16:
          return MPI_INTEGER16;
        default:
          return MPI_DATATYPE_NULL;
      }
    case MPI_TYPECLASS_REAL:
      switch (bytes) {
        case 2:
          return MPI_REAL2;
        case 4:
          return MPI_REAL4;
        case 8:
          return MPI_REAL8;
        case 16:
          return MPI_REAL16;
        default:
          return MPI_DATATYPE_NULL;
      }
    case MPI_TYPECLASS_COMPLEX:
      switch (bytes) {
        case 4:
          return MPI_COMPLEX4;
        case 8:
          return MPI_COMPLEX8;
        case 16:
          return MPI_COMPLEX16;
        case 32:
          return MPI_COMPLEX32;
        default:
          return MPI_DATATYPE_NULL;
      }
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Datatype match_pair(MPI_Datatype value, MPI_Datatype index) noexcept {
  struct Pair {
    MPI_Datatype value;
    MPI_Datatype index;
    MPI_Datatype pair;
  };
  const Pair pairs[] = {
      {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
      {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
      {MPI_LONG, MPI_INT, MPI_LONG_INT},
      {MPI_INT, MPI_INT, MPI_2INT},
      {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
      {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
      {MPI_REAL, MPI_REAL, MPI_2REAL},
      {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
      {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
  };
  for (const Pair& pair : pairs) {
    if (pair.value == value && pair.index == index) {
      return pair.pair;
    }
  }
  return MPI_DATATYPE_NULL;
}

}  // namespace sterna::mpi
