// Large pages for what malloc gives to programs that run as processes.
#pragma once

#include <string>
#include <vector>

namespace sterna::launch {

/// Asks the C library of a process that is about to start for large pages (transparent_hugepage),
/// where the environment says nothing of malloc yet. Messages between processes of one host are
/// read page by page (memory/large_pages.h): with these 64 KB to 1 MB go a third to a half faster.
///
/// A page must lie in one mapping. So blocks of up to 32 MiB are cut from the heap, as glibc does
/// by itself once the first one of that size was freed, and not mapped one by one. Each process
/// takes up to 2 MiB more for it, and keeps up to 64 MiB of what it has freed at the end of its
/// heap. Libraries without these tunables (glibc before 2.35, musl) do not look at them.
void ask_for_large_pages(std::vector<std::string>& environment);

}  // namespace sterna::launch
