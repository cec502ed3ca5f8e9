# Headers that the compiler reads once for all tests. Not for the runtime itself: with precompiled
# headers g++ 12 warns of code in them that it warns of nowhere else.
option(STERNA_PRECOMPILE "precompile the headers that most tests include" ON)
set(precompiled ${PROJECT_SOURCE_DIR}/cmake/precompiled)
# A test is worth less of a compiler's time than a runtime that users wait for: its own code is
# optimised a little, and says where it is, no more.
set(STERNA_TEST_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1;-g1>)

if(STERNA_PRECOMPILE)
  add_executable(sterna_precompiled EXCLUDE_FROM_ALL ${precompiled}/none.cc)
  target_link_libraries(sterna_precompiled PRIVATE sterna_flags GTest::gtest)
  target_compile_options(sterna_precompiled PRIVATE ${STERNA_TEST_OPTIONS})
  target_precompile_headers(sterna_precompiled PRIVATE ${precompiled}/tests.h)
endif()

function(sterna_test_program target)
  target_compile_options(${target} PRIVATE ${STERNA_TEST_OPTIONS})
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  if(STERNA_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM sterna_precompiled)
  endif()
endfunction()
