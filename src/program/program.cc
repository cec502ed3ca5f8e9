// Opens a program, makes ranks of it, and starts them.
#include "program/program.h"

#include <atomic>
#include <cstring>

#include <alloca.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/elf_machine.h"
#include "program/elf/parts.h"
#include "program/enter.h"
#include "program/rank_data.h"
#include "program/shims/calling.h"
#include "program/shims/process_state.h"
#include "program/shims/threads.h"
#include "program/streams.h"

namespace sterna::program {
namespace {

// The one program of this process: what a rank calls (exit, write) has no argument to find it with.
// Set by open() before any rank runs, cleared when none does.
constinit std::atomic<Program*> the_program{nullptr};

constexpr std::size_t kAuxiliaryCount = 16;

/// Some variables have several names: the executable's copy may go by any. (Not `signgam`, which a
/// program may have as its own.)
struct VariableName {
  Variable which;
  const char* name;
  const char* others[2] = {};
};
constexpr VariableName kVariables[] = {
    {Variable::standard_output, "stdout"},
    {Variable::standard_error, "stderr"},
    {Variable::standard_input, "stdin"},
    {Variable::environment, "environ", {"__environ", "_environ"}},
    {Variable::option_argument, "optarg"},
    {Variable::option_index, "optind"},
    {Variable::option_error, "opterr"},
    {Variable::option_unknown, "optopt"},
    {Variable::gamma_sign, "__signgam"},
    {Variable::daylight, "daylight", {"__daylight"}},
    {Variable::time_zone, "timezone", {"__timezone"}},
    {Variable::zone_names, "tzname", {"__tzname"}},
};

void place_variables(Program::Parts& parts) {
  for (const VariableName& item : kVariables) {
    Binding binding = parts.scope->find(item.name);
    for (const char* other : item.others) {
      if (other != nullptr && binding.symbol == nullptr) {
        if (const Binding named = parts.scope->find(other); named.symbol != nullptr) {
          binding = named;
        }
      }
    }
    check(binding.kind == Binding::Kind::image, "libc's variables have shims");
    parts.variable_offsets[static_cast<std::size_t>(item.which)] = binding.value;
  }
}

/// argv and environ with their strings, in one block of the rank's heap.
bool copy_arguments(RankData& data, const RankArguments& from) noexcept {
  std::size_t bytes = (from.arguments.size() + from.environment.size() + 2) * sizeof(char*);
  for (const auto list : {from.arguments, from.environment}) {
    for (const char* text : list) {
      bytes += std::strlen(text) + 1;
    }
  }
  auto* words = static_cast<char**>(data.slot->user_heap->allocate(bytes));
  if (words == nullptr) {
    return false;
  }
  auto* text = reinterpret_cast<char*>(words + from.arguments.size() + from.environment.size() + 2);
  const auto copy = [&](std::span<char* const> list) {
    char** const first = words;
    for (const char* item : list) {
      *words++ = text;
      text = ::stpcpy(text, item) + 1;
    }
    *words++ = nullptr;
    return first;
  };
  data.argument_count = static_cast<int>(from.arguments.size());
  data.arguments = copy(from.arguments);
  data.first_environment = copy(from.environment);
  RankVariables& variables = data.variables;
  variables.environment = data.first_environment;
  variables.program_name = data.arguments[0];
  if (variables.program_name != nullptr) {
    char* slash = std::strrchr(variables.program_name, '/');
    variables.program_short_name = slash != nullptr ? slash + 1 : variables.program_name;
  }
  return true;
}

/// What each rank computes or takes from its own variables, on its own thread pointer.
void finish_data(const RankData& data, const DataTemplate& from) noexcept {
  auto* base = reinterpret_cast<std::byte*>(data.images);
  for (const LateCopy& copy : from.late_copies()) {
    std::memcpy(base + copy.to, base + copy.from, copy.bytes);
  }
  for (const LateChoice& choice : from.late_choices()) {
    const std::uint64_t value =
        elf_machine::chosen_function(reinterpret_cast<std::uintptr_t>(base + choice.resolver)) +
        static_cast<std::uint64_t>(choice.addend);
    std::memcpy(base + choice.to, &value, sizeof value);
  }
}

}  // namespace

const Program* open_program() noexcept {
  return the_program.load(std::memory_order_acquire);
}

HostCalls& host_calls() noexcept {
  return *open_program()->parts().options.host;
}

Program::Program(std::unique_ptr<Parts> parts) noexcept : parts_{std::move(parts)} {}

Program::~Program() {
  sterna_debug_objects = {};
  Program* self = this;
  // Release: pairs with open_program() in a later program of the process.
  the_program.compare_exchange_strong(self, nullptr, std::memory_order_acq_rel);
}

Result<std::unique_ptr<Program>> Program::open(ProgramOptions options) {
  check(options.host != nullptr, "a program is opened with a host for its calls");
  auto parts = std::make_unique<Parts>();
  auto graph = load_objects(options.path, find_tls_room());
  if (!graph) {
    return graph.error();
  }
  parts->graph = std::move(graph.value());
  parts->options = std::move(options);
  parts->scope = std::make_unique<SymbolScope>(parts->graph, parts->options.functions);
  auto data = DataTemplate::build(parts->graph, *parts->scope);
  if (!data) {
    return data.error();
  }
  parts->data = std::move(data.value());
  auto tls = TlsTemplate::build();
  if (!tls) {
    return tls.error();
  }
  parts->tls = std::move(tls.value());
  if (auto ready = prepare_streams(); !ready) {
    return ready.error();
  }
  if (auto ready = prepare_threads(); !ready) {
    return ready.error();
  }
  prepare_process_state();
  place_variables(*parts);
  for (const auto& object : parts->graph.objects) {
    parts->debug_objects.push_back({object->file.path().c_str(), object->offset});
  }
  sterna_debug_objects = {parts->debug_objects.size(), parts->debug_objects.data()};
  std::unique_ptr<Program> program{new Program{std::move(parts)}};
  Program* none = nullptr;
  check(the_program.compare_exchange_strong(none, program.get(), std::memory_order_acq_rel),
        "a process has one open program at a time");
  return program;
}

Result<> Program::create_rank(memory::RankSlot& slot, const RankArguments& arguments) noexcept {
  check(slot.images.bytes >= image_bytes(), "map_images() has made room for the program");
  auto* base = reinterpret_cast<std::byte*>(slot.images.base);
  parts_->data.copy_to(base);
  if (auto mapped = map_text(slot.rank, parts_->graph); !mapped) {
    return mapped;
  }
  RankData& data = *new (base) RankData;
  data.slot = &slot;
  data.images = slot.images.base;
  slot.program = &data;
  if (!copy_arguments(data, arguments)) {
    return Error{Errc::out_of_memory, "no memory for the arguments of a rank"};
  }
  // Equal for all ranks of a process and enough for what programs do with it.
  std::memcpy(data.random_bytes, reinterpret_cast<const void*>(::getauxval(AT_RANDOM)),
              sizeof data.random_bytes);
  if (auto made = parts_->tls.create(slot, parts_->graph); !made) {
    return made;
  }
  const std::uintptr_t own = thread_pointer();
  set_thread_pointer(slot.thread_pointer);
  const bool has_streams = create_streams(data);
  finish_data(data, parts_->data);
  set_thread_pointer(own);
  if (!has_streams) {
    return Error{Errc::out_of_memory, "no memory for the standard streams of a rank"};
  }
  return Done{};
}

void Program::run(void* slot_address) noexcept {
  auto& slot = *static_cast<memory::RankSlot*>(slot_address);
  const RankData& data = data_of(slot);
  const PrivateObject& executable = *open_program()->parts().graph.objects.front();
  std::size_t environment_count = 0;
  while (data.first_environment[environment_count] != nullptr) {
    ++environment_count;
  }
  const auto argument_count = static_cast<std::size_t>(data.argument_count);
  // As the kernel lays it out: count, arguments, null, environment, null, pairs of the auxiliary
  // vector.
  const std::size_t words = 1 + argument_count + 1 + environment_count + 1 + 2 * kAuxiliaryCount;
  auto* frame = static_cast<std::uint64_t*>(alloca(words * sizeof(std::uint64_t) + 16));
  frame = reinterpret_cast<std::uint64_t*>((reinterpret_cast<std::uintptr_t>(frame) + 15) & ~15ul);
  std::uint64_t* at = frame;
  *at++ = argument_count;
  std::memcpy(at, data.arguments, (argument_count + 1) * sizeof(char*));
  at += argument_count + 1;
  std::memcpy(at, data.first_environment, (environment_count + 1) * sizeof(char*));
  at += environment_count + 1;
  const ImageRange headers = executable.file.program_headers();
  const std::uint64_t image = data.images + executable.offset;
  const std::uint64_t auxiliary[kAuxiliaryCount][2] = {
      {AT_PHDR, image + headers.address},
      {AT_PHENT, sizeof(Elf64_Phdr)},
      {AT_PHNUM, headers.bytes / sizeof(Elf64_Phdr)},
      {AT_PAGESZ, ::getauxval(AT_PAGESZ)},
      {AT_ENTRY, image + executable.file.entry()},
      {AT_UID, ::getauxval(AT_UID)},
      {AT_EUID, ::getauxval(AT_EUID)},
      {AT_GID, ::getauxval(AT_GID)},
      {AT_EGID, ::getauxval(AT_EGID)},
      {AT_SECURE, 0},
      {AT_CLKTCK, ::getauxval(AT_CLKTCK)},
      {AT_HWCAP, ::getauxval(AT_HWCAP)},
      {AT_HWCAP2, ::getauxval(AT_HWCAP2)},
      {AT_RANDOM, reinterpret_cast<std::uint64_t>(data.random_bytes)},
      {AT_EXECFN, reinterpret_cast<std::uint64_t>(data.arguments[0])},
      {AT_NULL, 0}};
  std::memcpy(at, auxiliary, sizeof auxiliary);
  resume_user(slot);
  sterna_program_enter(frame, image + executable.file.entry());
}

Result<> Program::prepare(std::uint32_t rank) noexcept {
  return map_text(rank, parts_->graph);
}

bool Program::forget(memory::RankSlot& slot) noexcept {
  if (slot.program == nullptr) {
    return true;
  }
  if (has_threads_left(data_of(slot))) {
    return false;
  }
  release_open_files(slot);
  return true;
}

void Program::for_each_image_extent(
    const memory::RankSlot& slot, FunctionRef<void(std::span<std::byte>)> visit) const noexcept {
  auto* const base = reinterpret_cast<std::byte*>(slot.images.base);
  visit({base, sizeof(RankData)});
  for (const TemplatePart& part : parts_->data.parts()) {
    visit({base + part.offset, part.bytes});
  }
}

bool Program::creates_threads() const noexcept {
  return parts_->scope->creates_threads();
}

std::size_t Program::image_bytes() const noexcept {
  return parts_->graph.image_bytes;
}

Result<> map_text(std::uint32_t rank, const ObjectGraph& graph) noexcept {
  const std::uintptr_t images = memory::rank_regions(rank).images.base;
  constexpr std::uint64_t kPage = memory::kPageBytes;
  for (const auto& object : graph.objects) {
    const auto segments = object->file.segments();
    for (std::size_t index = 0; index < segments.size();) {
      if (segments[index].is_writable) {
        ++index;
        continue;
      }
      // Neighbours in image and file become one mapping: the kernel limits their number.
      const std::uint64_t begin = segments[index].address / kPage * kPage;
      const std::uint64_t file_begin = segments[index].file_offset / kPage * kPage;
      std::uint64_t end = begin;
      for (; index < segments.size() && !segments[index].is_writable &&
             segments[index].address / kPage * kPage <= end &&
             segments[index].address - begin == segments[index].file_offset - file_begin;
           ++index) {
        end = (segments[index].address + segments[index].file_bytes + kPage - 1) / kPage * kPage;
      }
      void* at = reinterpret_cast<void*>(images + object->offset + begin);
      const void* mapped = ::mmap(at, end - begin, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                                  object->descriptor.get(), static_cast<off_t>(file_begin));
      if (mapped == MAP_FAILED) {
        return system_error("cannot map the text of " + object->file.path() +
                                " for a rank (is vm.max_map_count reached?)",
                            last_error_number());
      }
    }
  }
  return Done{};
}

}  // namespace sterna::program
