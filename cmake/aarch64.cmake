# Builds for AArch64 on another machine: cmake --preset aarch64 (docs/guide/building.md).
#   STERNA_SYSROOT   a folder with the headers and libraries of such a machine; else those that the
#                    system has of it (Debian: dpkg --add-architecture arm64)
# With qemu-aarch64 the tests run, too: those of sources of one floor, and what they start, if the
# kernel knows of the emulator (binfmt_misc).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(STERNA_SYSROOT "" CACHE PATH "headers and libraries of AArch64; empty: the system's")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STERNA_SYSROOT)
if(STERNA_SYSROOT)
  set(CMAKE_SYSROOT ${STERNA_SYSROOT})
  set(CMAKE_FIND_ROOT_PATH ${STERNA_SYSROOT})
  set(emulator_options -L ${STERNA_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(STERNA_EMULATOR NAMES qemu-aarch64 qemu-aarch64-static
             DOC "runs programs of AArch64 here")
if(STERNA_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${STERNA_EMULATOR} ${emulator_options})
elseif(NOT CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
  message(FATAL_ERROR "qemu-aarch64 is missing, which lists the tests of a build; apt-get install qemu-user")
endif()
