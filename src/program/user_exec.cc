// An exec without the kernel. What it leaves behind: the first copy of the executable and of its
// libraries (file pages, shared), the kernel's stack, on which the second copy goes on, and the
// break, which the second libc extends.
//
// Why equal addresses follow: without a hint the kernel gives the highest room that fits below its
// random mmap base. All room from kPlace to that base is taken here, by the second copy and by
// mappings that nobody can touch; so every later mapping lies below kPlace, and the order of
// mappings, which the dynamic loader decides alike in all nodes, decides its address.
#include "program/user_exec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <alloca.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "base/syscall.h"

extern "C" __attribute__((visibility("hidden")))
const char __ehdr_start[];  // NOLINT(bugprone-reserved-identifier): the linker's.

namespace sterna::program {
namespace {

constexpr std::size_t kPage = 4096;
// Above all that Sterna maps at fixed places (memory/layout.h); below the lowest base that the
// kernel chooses with the largest vm.mmap_rnd_bits.
#if defined(__aarch64__)
constexpr std::uintptr_t kPlace = 0xd000'0000'0000;
constexpr std::uintptr_t kAddressEnd = std::uintptr_t{1} << 48;
#else
constexpr std::uintptr_t kPlace = 0x6e00'0000'0000;
constexpr std::uintptr_t kAddressEnd = std::uintptr_t{1} << 47;
#endif
constexpr std::uintptr_t kLoaderPlace = kPlace + (std::uintptr_t{1} << 30);
constexpr std::size_t kStackRoom = std::size_t{64} << 20;  // Left free below the kernel's stack.
constexpr std::size_t kHeadersMax = 32;

struct Image {
  std::uintptr_t base = 0;
  std::uintptr_t entry = 0;
  std::uintptr_t headers = 0;
  std::size_t header_count = 0;
  std::array<char, 256> loader{};  // Path of the dynamic loader; empty: none.
};

constexpr std::uintptr_t page_of(std::uintptr_t address) noexcept {
  return address & ~(kPage - 1);
}

constexpr std::uintptr_t page_above(std::uintptr_t address) noexcept {
  return page_of(address + kPage - 1);
}

bool map_at(std::uintptr_t address, std::size_t bytes, int protection, int flags, int fd,
            std::uint64_t offset) noexcept {
  void* const wanted = reinterpret_cast<void*>(address);
  return ::mmap(wanted, bytes, protection, MAP_PRIVATE | flags, fd, static_cast<off_t>(offset)) ==
         wanted;
}

/// What was taken of the address space, to be given back when the second copy cannot start. One
/// thread, at the start of main.
struct Taken {
  struct Range {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
  };
  std::array<Range, 1024> ranges{};
  std::size_t count = 0;

  void give_back() noexcept {
    for (; count > 0; --count) {
      ::munmap(reinterpret_cast<void*>(ranges[count - 1].from),
               ranges[count - 1].to - ranges[count - 1].from);
    }
  }
};
constinit Taken taken;

/// A part that nobody can touch; false: something lies there.
bool bar(std::uintptr_t from, std::uintptr_t to) noexcept {
  if (taken.count == taken.ranges.size() ||
      !map_at(from, to - from, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
              0)) {
    return false;
  }
  taken.ranges[taken.count++] = {from, to};
  return true;
}

bool map_segment(const Elf64_Phdr& header, std::uintptr_t base, int fd) noexcept {
  const int protection = ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
                         ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                         ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  const std::uintptr_t begin = base + page_of(header.p_vaddr);
  const std::uintptr_t file_end = base + header.p_vaddr + header.p_filesz;
  const std::uintptr_t end = page_above(base + header.p_vaddr + header.p_memsz);
  if (header.p_filesz != 0 && !map_at(begin, page_above(file_end) - begin, protection, MAP_FIXED,
                                      fd, page_of(header.p_offset))) {
    return false;
  }
  const std::uintptr_t mapped_end = header.p_filesz != 0 ? page_above(file_end) : begin;
  if (header.p_memsz > header.p_filesz && header.p_filesz != 0) {
    // To the end of the page, as the kernel does: the loader's first allocations lie there.
    std::memset(reinterpret_cast<void*>(file_end), 0, mapped_end - file_end);
  }
  return end <= mapped_end ||
         map_at(mapped_end, end - mapped_end, protection, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/// Maps the position-independent file at `path` so that its address 0 is `base`.
bool map_image(const char* path, std::uintptr_t base, Image& image) noexcept {
  const FileDescriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  Elf64_Ehdr head{};
  std::array<Elf64_Phdr, kHeadersMax> headers{};
  if (::pread(file.get(), &head, sizeof head, 0) != sizeof head || head.e_type != ET_DYN ||
      head.e_phnum > kHeadersMax ||
      ::pread(file.get(), headers.data(), head.e_phnum * sizeof headers[0],
              static_cast<off_t>(head.e_phoff)) !=
          static_cast<ssize_t>(head.e_phnum * sizeof headers[0])) {
    return false;
  }
  std::uintptr_t end = 0;
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD) {
      end = page_above(std::max(end, header.p_vaddr + header.p_memsz));
    } else if (header.p_type == PT_INTERP && header.p_filesz <= image.loader.size()) {
      ::pread(file.get(), image.loader.data(), header.p_filesz,
              static_cast<off_t>(header.p_offset));
    }
  }
  if (end == 0 || end > kLoaderPlace - kPlace || !bar(base, base + end)) {
    return false;
  }
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && !map_segment(header, base, file.get())) {
      return false;
    }
  }
  image.base = base;
  image.entry = base + head.e_entry;
  image.headers = base + head.e_phoff;
  image.header_count = head.e_phnum;
  return true;
}

std::size_t read_whole(const char* path, std::span<char> buffer) noexcept {
  const FileDescriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  std::size_t bytes = 0;
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data() + bytes, buffer.size() - bytes);
    if (count <= 0) {
      return bytes;
    }
    bytes += static_cast<std::size_t>(count);
  }
}

/// Takes all room from kPlace upwards, but for that in which the stack grows.
void bar_all_above() noexcept {
  static std::array<char, 64 << 10> maps;  // Nothing is allocated: that would map, too.
  std::string_view rest{maps.data(), read_whole("/proc/self/maps", maps)};
  std::uintptr_t free_from = kPlace;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    const auto first = std::from_chars(line.data(), line.data() + line.size(), begin, 16);
    std::from_chars(std::min(first.ptr + 1, line.data() + line.size()), line.data() + line.size(),
                    end, 16);
    std::uintptr_t free_to = begin;
    if (line.ends_with("[stack]")) {
      free_to = free_to > kStackRoom ? free_to - kStackRoom : 0;
    }
    if (end > kPlace && begin < kAddressEnd && free_to > free_from) {
      bar(free_from, free_to);
    }
    free_from = std::max(free_from, end);
  }
}

bool kernel_maps_just_below() noexcept {
  void* const probe =
      ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) {
    ::munmap(probe, kPage);
  }
  return reinterpret_cast<std::uintptr_t>(probe) == kPlace - kPage;
}

/// The first libc has told the kernel where its thread's rseq area is; the second one has its own.
void forget_rseq() noexcept {
#if defined(RSEQ_SIG) && defined(SYS_rseq)
  constexpr unsigned kUnregister = 1;
  constexpr unsigned kRegisteredBytes = 32;
  if (__rseq_size != 0) {
    auto* const area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
    ::syscall(SYS_rseq, area, std::max(__rseq_size, kRegisteredBytes), kUnregister, RSEQ_SIG);
  }
#endif
}

[[noreturn]] void enter(const std::uint64_t* stack, std::uintptr_t entry) noexcept {
#if defined(__aarch64__)
  asm volatile("mov sp, %0\n\tmov x0, xzr\n\tbr %1" : : "r"(stack), "r"(entry) : "x0", "memory");
#else
  // In registers of our choice: rbp, which is cleared, may hold neither.
  asm volatile("mov %0, %%rsp\n\txor %%edx, %%edx\n\txor %%ebp, %%ebp\n\tjmp *%1"
               :
               : "S"(stack), "a"(entry)
               : "rdx", "memory");
#endif
  __builtin_unreachable();
}

std::size_t length_of(char* const* list) noexcept {
  std::size_t count = 0;
  while (list[count] != nullptr) {
    ++count;
  }
  return count;
}

/// As the kernel lays it out: count, arguments, 0, environment, 0, auxiliary vector.
[[noreturn]] void enter_loader(char** arguments, char** environment, const char* mark,
                               std::span<const Elf64_auxv_t> auxiliary, const Image& program,
                               const Image& loader) noexcept {
  const std::size_t argument_count = length_of(arguments);
  const std::size_t variable_count = length_of(environment);
  const std::size_t words = argument_count + variable_count + 4 + 2 * auxiliary.size();
  const auto place = reinterpret_cast<std::uintptr_t>(alloca(words * 8 + 16)) + 15;
  auto* const stack = reinterpret_cast<std::uint64_t*>(place & ~std::uintptr_t{15});
  std::uint64_t* at = stack;
  const auto put = [&](std::uint64_t word) { *at++ = word; };
  const auto put_text = [&](const char* text) { put(reinterpret_cast<std::uint64_t>(text)); };
  put(argument_count);
  std::for_each_n(arguments, argument_count, put_text);
  put(0);
  std::for_each_n(environment, variable_count, put_text);
  put_text(mark);
  put(0);
  for (const Elf64_auxv_t& entry : auxiliary) {
    put(entry.a_type);
    put(entry.a_type == AT_PHDR    ? program.headers
        : entry.a_type == AT_PHNUM ? program.header_count
        : entry.a_type == AT_ENTRY ? program.entry
        : entry.a_type == AT_BASE  ? loader.base
                                   : entry.a_un.a_val);
  }
  forget_rseq();
  enter(stack, loader.entry);
}

}  // namespace

bool is_at_fixed_place() noexcept {
  return reinterpret_cast<std::uintptr_t>(__ehdr_start) == kPlace;
}

void exec_at_fixed_place(char** arguments, char** environment, const char* mark) noexcept {
  std::array<Elf64_auxv_t, 64> auxiliary{};
  const std::size_t bytes =
      read_whole("/proc/self/auxv", {reinterpret_cast<char*>(auxiliary.data()), sizeof auxiliary});
  Image program;
  Image loader;
  if (bytes == 0 || bytes == sizeof auxiliary || !map_image("/proc/self/exe", kPlace, program) ||
      program.loader[0] == '\0' || !map_image(program.loader.data(), kLoaderPlace, loader)) {
    taken.give_back();
    return;
  }
  bar_all_above();
  if (kernel_maps_just_below()) {
    enter_loader(arguments, environment, mark,
                 std::span{auxiliary}.first(bytes / sizeof auxiliary[0]), program, loader);
  }
  taken.give_back();
}

}  // namespace sterna::program
