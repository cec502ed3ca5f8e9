// Address -> slot -> offset in the images region -> object.
#include "program/elf/find_object.h"

#include "memory/rank_slot.h"
#include "program/elf/parts.h"

namespace sterna::program {

bool is_of_rank(const void* address) noexcept {
  return memory::rank_slot_of(address) != nullptr;
}

FoundObject find_object(const void* address) noexcept {
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  const Program* program = open_program();
  const memory::RankSlot* slot = memory::rank_slot_of(where);
  if (slot == nullptr || program == nullptr) {
    return {};
  }
  const std::uint32_t rank = memory::slot_at(where).number;
  const std::uintptr_t images = memory::rank_regions(rank).images.base;
  for (const auto& object : program->parts().graph.objects) {
    if (where - (images + object->offset) < object->file.image_bytes()) {
      return {object.get(), images + object->offset};
    }
  }
  return {};
}

}  // namespace sterna::program
