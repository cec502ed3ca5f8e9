# sterna_layer(<name> NEEDS <layers...> LIBRARIES <targets...> SOURCES <generated files...>
# EXCLUDE <regex> APART <regex>): a folder of src/ is a layer, a static library sterna_<name> (for tests and tools)
# and its objects sterna_<name>_objects (for the shared libraries). Its sources are all *.cc and *.S
# of the folder but those that EXCLUDE matches and the ones named for a kind:
#   x_test.cc   GoogleTest, gathered in one program <name>_tests (label unit, test names <name>.*)
#   x_fuzz.cc   one LLVMFuzzerTestOneInput; built with a driver that replays tests/corpus/<x>
#   x_bench.cc  program <layer>_<x>_bench that measures, with Google Benchmark where it is installed;
#               built when it is asked for
# With CMAKE_UNITY_BUILD (./dev sanitize, which builds from nothing each time) the compiler gets the
# files of a folder as one, but those that APART matches: others there have names that they have, too.
#
# Warnings are errors where Sterna is developed and tested (presets dev, asan, tsan, clang; .ci/run),
# not for who installs it: a compiler of tomorrow warns of more.
option(STERNA_WERROR "take warnings of the compiler as errors" OFF)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
find_package(benchmark QUIET)
include(GoogleTest)

add_library(sterna_flags INTERFACE)
target_include_directories(sterna_flags INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
# No stack protector: a runtime function may resume on another kernel thread, whose guard differs.
# Initial-exec: a thread-local address is read again after every call (docs/rules/switching.md).
target_compile_options(sterna_flags INTERFACE
  -Wall -Wextra -fno-omit-frame-pointer -fno-stack-protector -ftls-model=initial-exec
  -fno-semantic-interposition
  $<$<COMPILE_LANGUAGE:CXX>:-Wshadow -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${STERNA_WERROR}>>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_link_libraries(sterna_flags INTERFACE Threads::Threads)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC for no processor in particular clears and copies records of 64 bytes and more by `rep stos`
  # and `rep movs`, which take 10 to 40 ns to begin; a request has 100 bytes, and stores take 2.
  target_compile_options(sterna_flags INTERFACE
    -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign
    -mmemcpy-strategy=vector_loop:1024:noalign,libcall:-1:noalign)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Landing pads (BTI, of -mbranch-protection=standard) are where jumps may go. A switch goes on
  # behind a call, where there is none: what calls it must not be taken to have them everywhere.
  include(CheckCXXSourceCompiles)
  check_cxx_source_compiles("#ifndef __ARM_FEATURE_BTI_DEFAULT\n#error\n#endif\nint main() {}"
                            STERNA_COMPILER_MAKES_LANDING_PADS)
  if(STERNA_COMPILER_MAKES_LANDING_PADS)
    target_compile_options(sterna_flags INTERFACE -mbranch-protection=pac-ret)
  endif()
endif()
if(STERNA_SANITIZE)
  # A program in C may pass any number as one of our enumerations: it is checked, and refused. (No
  # compiler counts on their range without -fstrict-enums.)
  target_compile_options(sterna_flags INTERFACE -fsanitize=${STERNA_SANITIZE}
                         -fno-sanitize-recover=undefined -fno-sanitize=vptr,enum)
  target_link_options(sterna_flags INTERFACE -fsanitize=${STERNA_SANITIZE})
  add_compile_definitions(STERNA_SANITIZED)
  if(STERNA_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # ThreadSanitizer does not see fences; g++ says so at each. Models check those orders instead.
    target_compile_options(sterna_flags INTERFACE -Wno-tsan)
  endif()
endif()
# Jobs of mobile ranks: not with sanitizers, which cannot follow thread pointers that change. What such
# jobs share with jobs of processes is tested there.
if(STERNA_SANITIZE)
  set(STERNA_TEST_RANKS OFF)
  set(STERNA_USER_FLAGS -fsanitize=${STERNA_SANITIZE} -fno-sanitize-recover=undefined)
else()
  set(STERNA_TEST_RANKS ON)
  set(STERNA_USER_FLAGS "")
endif()
# A program as users build them, which a sanitizer's library must come first in.
function(sterna_user_program target)
  target_compile_options(${target} PRIVATE ${STERNA_USER_FLAGS})
  target_link_options(${target} PRIVATE ${STERNA_USER_FLAGS})
endfunction()

include(cmake/precompile.cmake)

function(sterna_join_folders target sources apart)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS sources)
    if(NOT apart OR NOT source MATCHES "${apart}")
      get_filename_component(folder ${source} DIRECTORY)
      string(MAKE_C_IDENTIFIER "in_${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()

set(STERNA_TEST_SECONDS 240)  # Bounds what hangs, on a busy machine of one processor too.

function(sterna_layer layer)
  cmake_parse_arguments(ARG "" "" "NEEDS;LIBRARIES;SOURCES;EXCLUDE;APART" ${ARGN})
  # Relative, so that EXCLUDE never matches a folder that the checkout itself lies in.
  file(GLOB_RECURSE all RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*.S)
  if(ARG_EXCLUDE)
    list(FILTER all EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  set(sources ${all} ${ARG_SOURCES})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(TRANSFORM ARG_NEEDS PREPEND sterna_)
  if(sources)
    add_library(sterna_${layer}_objects OBJECT ${sources})
    sterna_join_folders(sterna_${layer}_objects "${sources}" "${ARG_APART}")
    target_link_libraries(sterna_${layer}_objects PRIVATE sterna_flags ${ARG_LIBRARIES})
    add_library(sterna_${layer} STATIC $<TARGET_OBJECTS:sterna_${layer}_objects>)
    target_link_libraries(sterna_${layer} PUBLIC sterna_flags ${ARG_NEEDS} ${ARG_LIBRARIES})
  else()
    add_library(sterna_${layer} INTERFACE)
    target_link_libraries(sterna_${layer} INTERFACE sterna_flags ${ARG_NEEDS} ${ARG_LIBRARIES})
  endif()
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(tests)
    add_executable(${layer}_tests ${tests})
    set_target_properties(${layer}_tests PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(${layer}_tests PRIVATE sterna_${layer})
    sterna_test_program(${layer}_tests)
    gtest_discover_tests(${layer}_tests TEST_PREFIX ${layer}. NO_PRETTY_VALUES
                         DISCOVERY_TIMEOUT 240 PROPERTIES LABELS unit TIMEOUT ${STERNA_TEST_SECONDS})
  endif()
  foreach(source IN LISTS all)
    if(source MATCHES "([a-z0-9_]+)_fuzz\\.cc$")
      set(subject ${CMAKE_MATCH_1})
      add_executable(${layer}_${subject}_fuzz ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz_replay.cc)
      target_link_libraries(${layer}_${subject}_fuzz PRIVATE sterna_${layer})
      add_test(NAME ${layer}.fuzz.${subject}
               COMMAND ${layer}_${subject}_fuzz ${PROJECT_SOURCE_DIR}/tests/corpus/${subject})
      set_tests_properties(${layer}.fuzz.${subject} PROPERTIES LABELS fuzz
                           TIMEOUT ${STERNA_TEST_SECONDS})
    elseif(source MATCHES "([a-z0-9_]+)_bench\\.cc$")
      add_executable(${layer}_${CMAKE_MATCH_1}_bench EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${layer}_${CMAKE_MATCH_1}_bench PRIVATE sterna_${layer}
                            $<$<TARGET_EXISTS:benchmark::benchmark>:benchmark::benchmark>)
    endif()
  endforeach()
endfunction()
