// Finds the file of a library that a program needs, as the dynamic linker would.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "program/elf/elf_file.h"

namespace sterna::program {

/// Searches, in this order: the needer's RPATH (or the executable's) if it has no RUNPATH,
/// LD_LIBRARY_PATH, the needer's RUNPATH, what this process has loaded, /etc/ld.so.cache, the
/// system's directories. The error lists the places.
Result<std::string> find_library(std::string_view name, const ElfFile& needer,
                                 const ElfFile& executable);

/// The path that /etc/ld.so.cache (its bytes) has for a library of this machine; empty: none.
std::string find_in_cache(std::string_view cache, std::string_view name);

}  // namespace sterna::program
