// USDT probes: places where perf, bpftrace or gdb may look into a running program. A probe is one
// `nop` and a note in the ELF file that says where its arguments are; without sys/sdt.h
// (systemtap's header, at build time) there is nothing at all, but the arguments still count as
// used. `readelf -n libsterna.so.0` lists them. tests: tests/abi/check_probes.py has the list.
//
// Macros, because the name becomes part of the assembly.
#pragma once

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define STERNA_PROBE1(name, a) STAP_PROBE1(sterna, name, a)
#define STERNA_PROBE2(name, a, b) STAP_PROBE2(sterna, name, a, b)
#define STERNA_PROBE4(name, a, b, c, d) STAP_PROBE4(sterna, name, a, b, c, d)
#else
#define STERNA_PROBE1(name, a) static_cast<void>(sizeof(a))
#define STERNA_PROBE2(name, a, b) static_cast<void>(sizeof(a) + sizeof(b))
#define STERNA_PROBE4(name, a, b, c, d) \
  static_cast<void>(sizeof(a) + sizeof(b) + sizeof(c) + sizeof(d))
#endif
