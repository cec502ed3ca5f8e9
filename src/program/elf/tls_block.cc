// libc's own functions make one block, in ordinary memory; ranks get copies of what is not zero in
// it.
#include "program/elf/tls_block.h"

#include <algorithm>
#include <cstring>

#include <dlfcn.h>

#include "base/elf_machine.h"
#include "base/thread_pointer.h"

// The end of the room that node/tls_reserve.S sets aside, in executables that have it.
extern "C" __attribute__((weak)) std::uint64_t sterna_program_tls_room(std::uintptr_t pointer);

namespace sterna::program {
namespace {

constexpr std::size_t kAlignment = 64;
// A thread id that no kernel thread has (PID_MAX_LIMIT is 2^22) and that fits a futex word: mutexes
// remember their owner by it, so it stays the same on all workers and nodes.
constexpr std::uint32_t kFirstRankTid = 1u << 29;
constexpr std::uint32_t kRseqUnregistered = 0xffff'ffff;  // RSEQ_CPU_ID_UNINITIALIZED

std::size_t align_up(std::size_t value, std::size_t alignment = kAlignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

template <typename T>
T* find_private(const char* name) noexcept {
  if (void* address = ::dlvsym(RTLD_DEFAULT, name, "GLIBC_PRIVATE"); address != nullptr) {
    return reinterpret_cast<T*>(address);
  }
  return nullptr;
}

Error unknown_libc(const char* what) {
  return {Errc::unsupported, std::string{"this C library has no "} + what +
                                 ": ranks need glibc 2.31 to 2.41 (run ldd --version)"};
}

/// libthread_db's description of a field: bits, count, offset.
Result<std::size_t> field_offset(const char* name) {
  const auto* field = find_private<const std::uint32_t>(name);
  if (field == nullptr) {
    return unknown_libc(name);
  }
  return std::size_t{field[2]};
}

Result<TlsGeometry> ask_geometry() {
  TlsGeometry geometry;
  const auto* pthread_bytes = find_private<const std::uint32_t>("_thread_db_sizeof_pthread");
  auto* static_info = find_private<void(std::size_t*, std::size_t*)>("_dl_get_tls_static_info");
  if (pthread_bytes == nullptr || static_info == nullptr) {
    return unknown_libc("_dl_get_tls_static_info");
  }
  std::size_t alignment = 0;
  static_info(&geometry.static_bytes, &alignment);
  if (alignment > memory::kPageBytes) {
    return unknown_libc("thread-local alignment of at most a page");
  }
  geometry.static_bytes = align_up(geometry.static_bytes);
  geometry.pthread_bytes = align_up(*pthread_bytes);
  struct {
    const char* name;
    std::size_t* offset;
  } fields[] = {{"_thread_db_pthread_list", &geometry.list_offset},
                {"_thread_db_pthread_tid", &geometry.tid_offset},
                {"_thread_db_pthread_specific", &geometry.specific_offset}};
  for (const auto& field : fields) {
    auto offset = field_offset(field.name);
    if (!offset) {
      return offset.error();
    }
    *field.offset = offset.value();
  }
  if (const void* rseq = ::dlsym(RTLD_DEFAULT, "__rseq_offset"); rseq != nullptr) {
    geometry.rseq_offset = *static_cast<const std::ptrdiff_t*>(rseq);
  }
  return geometry;
}

std::uintptr_t pthread_at(std::uintptr_t pointer, const TlsGeometry& geometry) noexcept {
  return elf_machine::kTlsIsBelow ? pointer : pointer - geometry.pthread_bytes;
}

/// Index of the word at the thread pointer that holds the dtv.
constexpr std::size_t kDtvWord = elf_machine::kTlsIsBelow ? 1 : 0;

void*& dtv_of(std::uintptr_t pointer) noexcept {
  return reinterpret_cast<void**>(pointer)[kDtvWord];
}

/// struct pthread of a thread that is about to start, as libc's allocate_stack() leaves it.
void init_pthread(std::uintptr_t pointer, std::uint32_t tid, const TlsGeometry& geometry) noexcept {
  const std::uintptr_t self = pthread_at(pointer, geometry);
  const std::uintptr_t model = pthread_at(thread_pointer(), geometry);
  // The header: stack guard, pointer guard, processor features.
  std::memcpy(reinterpret_cast<void*>(self), reinterpret_cast<const void*>(model),
              geometry.list_offset);
  auto* words = reinterpret_cast<std::uintptr_t*>(self);
  if constexpr (elf_machine::kTlsIsBelow) {
    words[0] = words[2] = self;  // tcb, self
  }
  // In no list of threads, in a way that fork() can remove it from one.
  auto* list = reinterpret_cast<std::uintptr_t*>(self + geometry.list_offset);
  list[0] = list[1] = reinterpret_cast<std::uintptr_t>(list);
  std::memcpy(reinterpret_cast<void*>(self + geometry.tid_offset), &tid, sizeof tid);
  // After the thread id: the list of robust mutexes, empty; a head that names itself.
  const std::uintptr_t robust = geometry.tid_offset + 8;
  const auto* model_robust = reinterpret_cast<const std::uintptr_t*>(model + robust);
  if (model_robust[0] == model + robust + 8) {
    auto* own = reinterpret_cast<std::uintptr_t*>(self + robust);
    own[0] = own[1] = self + robust + 8;
    own[2] = model_robust[2];  // futex_offset
  }
  // Thread-specific data: the first block of it is inside struct pthread, before the array.
  const auto* model_specific =
      reinterpret_cast<const std::uintptr_t*>(model + geometry.specific_offset);
  if (model_specific[0] - model < geometry.pthread_bytes) {
    *reinterpret_cast<std::uintptr_t*>(self + geometry.specific_offset) =
        self + (model_specific[0] - model);
  }
  if (geometry.rseq_offset != 0) {
    // struct rseq: {cpu_id_start, cpu_id}. The kernel knows the worker's only.
    const std::uint32_t ids[2] = {0, kRseqUnregistered};
    const std::uintptr_t at = pointer + static_cast<std::uintptr_t>(geometry.rseq_offset);
    std::memcpy(reinterpret_cast<void*>(at), ids, sizeof ids);
  }
}

}  // namespace

Result<TlsTemplate> TlsTemplate::build() {
  TlsTemplate result;
  auto geometry = ask_geometry();
  if (!geometry) {
    return geometry.error();
  }
  result.geometry_ = geometry.value();
  auto* allocate_tls = find_private<void*(void*)>("_dl_allocate_tls");
  auto* init_character_types = find_private<void()>("__ctype_init");
  if (allocate_tls == nullptr || init_character_types == nullptr) {
    return unknown_libc("_dl_allocate_tls");
  }
  const std::size_t half = align_up(result.geometry_.static_bytes + result.geometry_.pthread_bytes);
  const auto memory = std::make_unique<std::byte[]>(2 * half + 2 * kAlignment);
  const std::uintptr_t pointer = align_up(reinterpret_cast<std::uintptr_t>(memory.get()) + half);
  init_pthread(pointer, kFirstRankTid - 1, result.geometry_);
  if (allocate_tls(reinterpret_cast<void*>(pointer)) == nullptr) {
    return Errc::out_of_memory;
  }
  const std::uintptr_t own = thread_pointer();
  set_thread_pointer(pointer);
  init_character_types();
  set_thread_pointer(own);
  const auto* at = reinterpret_cast<const std::byte*>(pointer);
  if constexpr (elf_machine::kTlsIsBelow) {
    result.keep(at - result.geometry_.static_bytes, at, at);
  } else {
    result.keep(at + elf_machine::kTlsReservedAtPointer, at + result.geometry_.static_bytes, at);
  }
  const auto* dtv = static_cast<const DtvEntry*>(dtv_of(pointer));
  const auto length = reinterpret_cast<std::uintptr_t>(dtv[-1].value);
  result.dtv_.assign(dtv - 1, dtv + 1 + length);
  result.dtv_is_own_.resize(result.dtv_.size());
  for (std::size_t index = 2; index < result.dtv_.size(); ++index) {
    const auto offset = reinterpret_cast<std::uintptr_t>(result.dtv_[index].value) - pointer;
    if (offset + half < 2 * half) {
      result.dtv_[index].value = reinterpret_cast<void*>(offset);
      result.dtv_is_own_[index] = true;
    }
  }
  // The dtv itself is left to libc's heap: once a process.
  return result;
}

void TlsTemplate::keep(const std::byte* begin, const std::byte* end, const std::byte* pointer) {
  for (const std::byte* line = begin; line < end; line += kAlignment) {
    static constexpr std::byte kZero[kAlignment] = {};
    if (std::memcmp(line, kZero, kAlignment) == 0) {
      continue;
    }
    if (pieces_.empty() || pointer + pieces_.back().offset + pieces_.back().bytes.size() != line) {
      pieces_.push_back({line - pointer, {}});
    }
    pieces_.back().bytes.insert(pieces_.back().bytes.end(), line, line + kAlignment);
  }
}

Result<> TlsTemplate::create(memory::RankSlot& slot, const ObjectGraph& graph) const noexcept {
  const std::size_t below =
      elf_machine::kTlsIsBelow ? geometry_.static_bytes : geometry_.pthread_bytes;
  const std::size_t above =
      elf_machine::kTlsIsBelow ? geometry_.pthread_bytes : geometry_.static_bytes;
  // Ranks' blocks would all fall on the same cache sets without a colour.
  const std::size_t colour = memory::colour_offset(slot.rank);
  const std::uintptr_t pointer = align_up(
      slot.tls.base + colour + below, std::max<std::size_t>(kAlignment, graph.tls_alignment));
  if (pointer + above > slot.tls.base + slot.tls.bytes) {
    return Error{Errc::unsupported, "the thread-local block of a rank needs " +
                                        std::to_string(below + above) +
                                        " bytes, more than its slot has for it"};
  }
  for (const Piece& piece : pieces_) {
    std::memcpy(reinterpret_cast<std::byte*>(pointer) + piece.offset, piece.bytes.data(),
                piece.bytes.size());
  }
  // In the user heap, since libc reallocates it when libraries are loaded later.
  auto* dtv = static_cast<DtvEntry*>(slot.user_heap->allocate(dtv_.size() * sizeof(DtvEntry)));
  if (dtv == nullptr) {
    return Errc::out_of_memory;
  }
  for (std::size_t index = 0; index < dtv_.size(); ++index) {
    dtv[index] = dtv_[index];
    if (dtv_is_own_[index]) {
      dtv[index].value =
          reinterpret_cast<void*>(pointer + reinterpret_cast<std::uintptr_t>(dtv[index].value));
    }
  }
  init_pthread(pointer, kFirstRankTid + slot.rank, geometry_);
  dtv_of(pointer) = dtv + 1;
  init_private_tls(graph, slot.images.base, pointer);
  slot.thread_pointer = pointer;
  slot.tls_bytes_used = pointer + above - slot.tls.base;
  return Done{};
}

void init_private_tls(const ObjectGraph& graph, std::uintptr_t images,
                      std::uintptr_t pointer) noexcept {
  for (const auto& object : graph.objects) {
    const TlsSegment& tls = object->file.tls();
    // From the rank's image: relocated there.
    std::memcpy(reinterpret_cast<void*>(pointer + static_cast<std::uintptr_t>(object->tls_offset)),
                reinterpret_cast<const void*>(images + object->offset + tls.address),
                tls.initial.size());
  }
}

TlsRoom find_tls_room() noexcept {
  if (!&sterna_program_tls_room) {
    return {};
  }
  return {sterna_program_tls_room(thread_pointer())};
}

}  // namespace sterna::program
