# The tests of this folder, those that it adds later too: their jobs keep what they measure of ways
# (src/net/costs/costs_file.h) in the build, not among what the user's jobs have measured.
function(sterna_test_cache)
  cmake_language(DEFER CALL _sterna_test_cache)
endfunction()

function(_sterna_test_cache)
  get_property(names DIRECTORY PROPERTY TESTS)
  if(names)
    set_property(TEST ${names} APPEND PROPERTY ENVIRONMENT
                 "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/tests/cache")
  endif()
endfunction()
