# The two shared libraries, made of the layers:
#   libsterna.so.0   everything up to src/program, and the C API
#   libmpi_abi.so.1  src/mpi: the MPI standard ABI, linked to libsterna

# sterna_shared(<target> <soname version> <output name> LAYERS ... LIBRARIES ...)
function(sterna_shared target version output)
  cmake_parse_arguments(ARG "" "" "LAYERS;LIBRARIES" ${ARGN})
  set(empty ${CMAKE_BINARY_DIR}/${target}.cc)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "// The library is made of the archives of its layers.\n")
  endif()
  add_library(${target} SHARED ${empty})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${output} SOVERSION ${version} VERSION ${version} LINKER_LANGUAGE CXX
    BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN")
  foreach(layer IN LISTS ARG_LAYERS)
    get_target_property(type sterna_${layer} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives $<TARGET_FILE:sterna_${layer}>)
      list(APPEND targets sterna_${layer})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE
    -Wl,--whole-archive ${archives} -Wl,--no-whole-archive -Wl,-z,defs
    ${ARG_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${archives}")
  add_dependencies(${target} ${targets})
endfunction()

sterna_shared(sterna_core 0 sterna
  LAYERS base topology memory threads sched progress net rpc migration balance runtime program
  LIBRARIES fmt::fmt hwloc sodium)
sterna_shared(sterna_mpi_abi 1 mpi_abi LAYERS mpi LIBRARIES sterna_core fmt::fmt)
