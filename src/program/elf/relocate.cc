// Applies all relocations of all private objects to the template.
#include <algorithm>
#include <cstring>
#include <set>

#include <dlfcn.h>

#include "base/elf_machine.h"
#include "base/hash.h"
#include "base/thread_pointer.h"
#include "program/elf/data_template.h"
#include "program/enter.h"

namespace sterna::program {

class Relocator {
 public:
  Relocator(const ObjectGraph& graph, SymbolScope& scope, DataTemplate& result)
      : graph_{graph}, scope_{scope}, result_{result} {}

  Result<> run() {
    for (const auto& object : graph_.objects) {
      add_parts(*object);
    }
    own_pointers_.resize(result_.parts_.size());
    for (const auto& object : graph_.objects) {
      if (auto applied = apply_packed(*object); !applied) {
        return applied;
      }
    }
    // Copies come last: they take what the relocations of a library have made of its variable.
    for (const bool copies : {false, true}) {
      for (const auto& object : graph_.objects) {
        for (const auto relocations :
             {object->file.relocations(), object->file.call_relocations()}) {
          for (const Elf64_Rela& relocation : relocations) {
            const auto type = ELF64_R_TYPE(relocation.r_info);
            if (copies != (type == elf_machine::relocation_copy)) {
              continue;
            }
            if (auto applied = apply(*object, relocation); !applied) {
              return applied;
            }
          }
        }
      }
    }
    for (std::size_t index = 0; index < result_.parts_.size(); ++index) {
      result_.parts_[index].own_pointers.assign(own_pointers_[index].begin(),
                                                own_pointers_[index].end());
    }
    return Done{};
  }

 private:
  void add_parts(const PrivateObject& object) {
    for (const Segment& segment : object.file.segments()) {
      if (!segment.is_writable) {
        continue;
      }
      TemplatePart part{.offset = object.offset + segment.address,
                        .bytes = segment.bytes,
                        .used_bytes = segment.file_bytes,
                        .contents = std::make_unique<std::byte[]>(segment.file_bytes),
                        .own_pointers = {}};
      const auto initial = object.file.contents({segment.address, segment.file_bytes});
      std::memcpy(part.contents.get(), initial.data(), initial.size());
      result_.parts_.push_back(std::move(part));
    }
  }

  struct Place {
    std::size_t part = 0;
    std::uint64_t offset = 0;  // From the start of the part.
    std::byte* bytes = nullptr;
  };

  /// Where `bytes` at `offset` of the images region are written; null bytes: nowhere writable.
  Place place(std::uint64_t offset, std::uint64_t bytes) {
    for (std::size_t index = 0; index < result_.parts_.size(); ++index) {
      TemplatePart& part = result_.parts_[index];
      if (offset < part.offset || offset - part.offset > part.bytes ||
          bytes > part.bytes - (offset - part.offset)) {
        continue;
      }
      const std::uint64_t start = offset - part.offset;
      if (start + bytes > part.used_bytes) {
        grow(part, start + bytes);
      }
      return {index, start, part.contents.get() + start};
    }
    return {};
  }

  /// The zero part of a segment is written too, by copies.
  static void grow(TemplatePart& part, std::uint64_t bytes) {
    auto contents = std::make_unique<std::byte[]>(bytes);
    std::memcpy(contents.get(), part.contents.get(), part.used_bytes);
    part.contents = std::move(contents);
    part.used_bytes = bytes;
  }

  static Error misplaced(const PrivateObject& object) {
    return {Errc::malformed,
            object.file.path() + ": a relocation lies outside of its data: the file is damaged"};
  }

  Result<> put(const PrivateObject& object, std::uint64_t address, std::uint64_t value,
               bool is_own) {
    const Place at = place(object.offset + address, sizeof value);
    if (at.bytes == nullptr) {
      return misplaced(object);
    }
    std::memcpy(at.bytes, &value, sizeof value);
    if (is_own) {
      own_pointers_[at.part].insert(at.offset);
    } else {
      own_pointers_[at.part].erase(at.offset);
    }
    return Done{};
  }

  Result<> apply_packed(const PrivateObject& object) {
    for (const std::uint64_t address : object.file.packed_relocations()) {
      const Place at = place(object.offset + address, sizeof(std::uint64_t));
      if (at.bytes == nullptr) {
        return misplaced(object);
      }
      std::uint64_t addend;
      std::memcpy(&addend, at.bytes, sizeof addend);
      if (auto done = put(object, address, object.offset + addend, true); !done) {
        return done;
      }
    }
    return Done{};
  }

  Result<> apply(const PrivateObject& object, const Elf64_Rela& relocation) {
    using namespace elf_machine;
    const auto addend = static_cast<std::uint64_t>(relocation.r_addend);
    const auto type = ELF64_R_TYPE(relocation.r_info);
    switch (type) {
      case relocation_none:
        return Done{};
      case relocation_relative:
        return put(object, relocation.r_offset, object.offset + addend, true);
      case relocation_chosen:
        result_.late_choices_.push_back(
            {object.offset + relocation.r_offset, object.offset + addend, 0});
        return put(object, relocation.r_offset, 0, false);
      case relocation_absolute:
      case relocation_data:
      case relocation_call:
        return apply_address(object, relocation,
                             type == relocation_absolute || kBindingHasAddend ? addend : 0);
      case relocation_copy:
        return apply_copy(object, relocation);
      case relocation_tls_module:
      case relocation_tls_in_module:
      case relocation_tls_offset:
      case relocation_tls_descriptor:
        return apply_tls(object, relocation, addend);
      default:
        return Error{Errc::unsupported, object.file.path() + ": has a relocation of type " +
                                            std::to_string(type) + ", which is not known"};
    }
  }

  Result<Binding> bind(const PrivateObject& object, const Elf64_Rela& relocation,
                       bool skip_executable = false) {
    const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info));
    if (index == 0) {
      return Binding{Binding::Kind::image, object.offset, &object, nullptr};
    }
    return scope_.resolve(object, index, skip_executable);
  }

  Result<> apply_address(const PrivateObject& object, const Elf64_Rela& relocation,
                         std::uint64_t addend) {
    auto bound = bind(object, relocation);
    if (!bound) {
      return bound.error();
    }
    const Binding& binding = bound.value();
    if (binding.symbol != nullptr && ELF64_ST_TYPE(binding.symbol->st_info) == STT_GNU_IFUNC) {
      result_.late_choices_.push_back(
          {object.offset + relocation.r_offset, binding.value, static_cast<std::int64_t>(addend)});
      return put(object, relocation.r_offset, 0, false);
    }
    if (binding.kind == Binding::Kind::absolute) {
      result_.host_hash_ = mix64(result_.host_hash_ ^ binding.value);
    }
    return put(object, relocation.r_offset,
               binding.kind == Binding::Kind::missing ? 0 : binding.value + addend,
               binding.kind == Binding::Kind::image);
  }

  Result<> apply_copy(const PrivateObject& object, const Elf64_Rela& relocation) {
    const Elf64_Sym* wanted =
        object.file.symbol(static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info)));
    auto bound = bind(object, relocation, true);
    if (!bound) {
      return bound.error();
    }
    const Binding& source = bound.value();
    if (wanted == nullptr || source.kind == Binding::Kind::missing) {
      return Done{};
    }
    const std::uint64_t to = object.offset + relocation.r_offset;
    const Place target = place(to, wanted->st_size);
    if (target.bytes == nullptr) {
      return misplaced(object);
    }
    if (source.kind == Binding::Kind::absolute) {
      std::memcpy(target.bytes, reinterpret_cast<const void*>(source.value), wanted->st_size);
      return Done{};
    }
    if (source.symbol == nullptr) {
      result_.late_copies_.push_back({to, source.value, wanted->st_size});
      return Done{};
    }
    return copy_variable(*source.object, source.value, to,
                         std::min(wanted->st_size, source.symbol->st_size));
  }

  Result<> copy_variable(const PrivateObject& owner, std::uint64_t from, std::uint64_t to,
                         std::uint64_t bytes) {
    if (place(from, bytes).bytes == nullptr) {
      // A constant: it lies in the text and holds no pointers.
      const auto constant = owner.file.contents({from - owner.offset, bytes});
      if (constant.size() != bytes) {
        return misplaced(owner);
      }
      std::memcpy(place(to, bytes).bytes, constant.data(), bytes);
      return Done{};
    }
    const Place source = place(from, bytes);
    const Place target = place(to, bytes);  // May have moved `contents`, not source's if another.
    std::memmove(target.bytes, place(from, bytes).bytes, bytes);
    const auto& pointers = own_pointers_[source.part];
    const std::vector<std::uint64_t> copied{pointers.lower_bound(source.offset),
                                            pointers.lower_bound(source.offset + bytes)};
    for (const std::uint64_t offset : copied) {
      own_pointers_[target.part].insert(target.offset + (offset - source.offset));
    }
    return Done{};
  }

  Result<> apply_tls(const PrivateObject& object, const Elf64_Rela& relocation,
                     std::uint64_t addend) {
    using namespace elf_machine;
    auto bound = bind(object, relocation);
    if (!bound) {
      return bound.error();
    }
    const Binding& binding = bound.value();
    std::int64_t module_offset = 0;     // From the thread pointer; what "module" means for ranks.
    std::uint64_t variable_offset = 0;  // In the module.
    if (binding.object != nullptr) {
      module_offset = binding.object->tls_offset;
      variable_offset = binding.symbol != nullptr ? binding.symbol->st_value : 0;
    } else if (binding.kind == Binding::Kind::absolute) {
      // dlsym gave the address of this thread's variable of a host library. These are all loaded at
      // start, so their offset from the thread pointer is the same in every thread.
      module_offset = static_cast<std::int64_t>(binding.value - thread_pointer());
    }
    const std::uint64_t total =
        static_cast<std::uint64_t>(module_offset) + variable_offset + addend;
    switch (ELF64_R_TYPE(relocation.r_info)) {
      case relocation_tls_module:
        return put(object, relocation.r_offset, static_cast<std::uint64_t>(module_offset), false);
      case relocation_tls_in_module:
        return put(object, relocation.r_offset, variable_offset + addend, false);
      case relocation_tls_offset:
        return put(object, relocation.r_offset, total, false);
      default:
        break;
    }
    const auto resolver = reinterpret_cast<std::uint64_t>(&sterna_program_tls_descriptor);
    if (auto done = put(object, relocation.r_offset, resolver, false); !done) {
      return done;
    }
    return put(object, relocation.r_offset + 8, total, false);
  }

  const ObjectGraph& graph_;
  SymbolScope& scope_;
  DataTemplate& result_;
  std::vector<std::set<std::uint64_t>> own_pointers_;  // By part.
};

Result<DataTemplate> DataTemplate::build(const ObjectGraph& graph, SymbolScope& scope) {
  DataTemplate result;
  if (auto done = Relocator{graph, scope, result}.run(); !done) {
    return done.error();
  }
  return result;
}

}  // namespace sterna::program
