# The tree of the build and of the installation, which have one shape:
#   bin/      sterna, sterna-node, mpiexec, mpirun, mpicc, mpicxx, mpic++
#   lib/      libsterna.so.0, libmpi_abi.so.1, pkgconfig/, cmake/Sterna/
#   include/  mpi.h, sterna/
#   share/    documents, examples
# Everything finds its parts from its own place, so the tree may be moved.

set(compilers ${PROJECT_SOURCE_DIR}/tools/compilers/mpicc)
foreach(name IN ITEMS mpicc mpicxx mpic++)
  configure_file(${compilers} ${CMAKE_BINARY_DIR}/bin/${name} COPYONLY)
  install(PROGRAMS ${compilers} DESTINATION bin RENAME ${name})
endforeach()
if(NOT EXISTS ${CMAKE_BINARY_DIR}/include)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include SYMBOLIC)
endif()
foreach(file IN ITEMS pkgconfig/sterna.pc pkgconfig/mpi.pc cmake/Sterna/SternaConfig.cmake
                      cmake/Sterna/SternaConfigVersion.cmake)
  get_filename_component(name ${file} NAME)
  get_filename_component(folder ${file} DIRECTORY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package/${name}.in ${CMAKE_BINARY_DIR}/lib/${file}
                 @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/lib/${file} DESTINATION lib/${folder})
endforeach()

# With the path of the installation: CMake would pad an empty one of the build tree, to replace it
# later, and each empty part of a path is the folder that the command is called in.
set_target_properties(sterna PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS sterna DESTINATION bin)
foreach(name IN ITEMS mpiexec mpirun)
  install(CODE "file(CREATE_LINK sterna \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/${name}\" SYMBOLIC)")
endforeach()
install(TARGETS sterna-node DESTINATION bin)
foreach(library IN ITEMS sterna_shared mpi_abi)
  set_target_properties(${library} PROPERTIES INSTALL_RPATH "\$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ${library} DESTINATION lib)
endforeach()
install(DIRECTORY include/ DESTINATION include)
install(DIRECTORY examples/ DESTINATION share/sterna/examples PATTERN CMakeLists.txt EXCLUDE)
install(DIRECTORY docs/ DESTINATION share/doc/sterna)
install(FILES tools/gdb/sterna.py tools/gdb/sterna_memory.py DESTINATION share/sterna/gdb)
install(FILES README.md DESTINATION share/doc/sterna)
