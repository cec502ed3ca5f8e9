// What programs do with their standard streams besides printing: sent to files, closed, wide
// characters. The argument says what; the output is compared by the test.
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <string>
#include <vector>

#include "../mpi/check.h"

namespace {

void reopen(const char* folder) {
  char name[512];
  std::snprintf(name, sizeof name, "%s/out.%d", folder, world_rank);
  std::printf("before %d\n", world_rank);
  CHECK(std::freopen(name, "w", stdout) == stdout);
  std::printf("line of %d\n", world_rank);
  CHECK(std::fflush(stdout) == 0 && write(1, "written\n", 8) == 8);
  CHECK(std::freopen(name, "a", stdout) == stdout);
  std::printf("added\n");  // Goes out at the end.
  CHECK(std::freopen("/dev/null", "w", stderr) == stderr);
  std::fprintf(stderr, "for nobody\n");
  CHECK(std::freopen("/nonexistent/file", "r", stdin) == nullptr);
  std::snprintf(name, sizeof name, "%s/in", folder);
  CHECK(std::freopen(name, "r", stdin) == stdin);
  char line[32];
  CHECK(std::fgets(line, sizeof line, stdin) != nullptr && std::strcmp(line, "from a file\n") == 0);
}

void close_all() {
  std::printf("hello %d\n", world_rank);
  std::FILE* file = fdopen(1, "w");
  CHECK(file != nullptr && std::fputs("by fdopen\n", file) >= 0 && std::fclose(file) == 0);
  CHECK(std::fclose(stdout) == 0 && std::fclose(stdin) == 0 && std::fclose(stderr) == 0);
  std::vector<char*> blocks;  // In place of what was freed.
  for (int i = 0; i < 2000; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(16 + i % 900)));
    std::memset(blocks.back(), 'A', 16 + i % 900);
  }
}

void write_wide() {
  CHECK(std::setlocale(LC_ALL, "C.UTF-8") != nullptr);
  std::wcout << L"wide \u00e4 " << world_rank << std::endl;
  CHECK(std::fwprintf(stdout, L"%ls %d\n", L"fwprintf", world_rank) == 11);
  CHECK(std::wprintf(L"%lc\n", L'\u4ee3') == 2);
  CHECK(std::putwchar(L'p') == L'p' && std::fputwc(L'\n', stdout) == L'\n');
  CHECK(std::fputws(L"fputws\n", stdout) >= 0);
  std::printf("narrow\n");
}

void read_wide() {
  CHECK(std::setlocale(LC_ALL, "C.UTF-8") != nullptr);
  if (world_rank != 0) {
    CHECK(std::getwchar() == WEOF);
    return;
  }
  wchar_t line[32];
  CHECK(std::getwchar() == L'\u00e4' && std::ungetwc(L'\u00e4', stdin) == L'\u00e4');
  CHECK(std::fgetws(line, 32, stdin) == line && std::wcscmp(line, L"\u00e4 line\n") == 0);
  std::wstring word;
  std::wcin >> word;
  CHECK(word == L"w\u00f6rd");
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const std::string what = argc > 1 ? argv[1] : "";
  MPI_Finalize();
  if (what == "reopen") {
    reopen(argv[2]);
  } else if (what == "close") {
    close_all();
  } else if (what == "write") {
    write_wide();
  } else if (what == "read") {
    read_wide();
  } else {
    return 2;
  }
  return error_count != 0;
}
