# Libraries whose filters are measured beside ours, where they are installed. `target` becomes a CMake
# target that a line of filters/catalogue.txt may name; without the library there is none, and the
# filter is listed as not built. Found by header and library: Debian's libbloom-dev has no pkg-config
# file, and the CMake files of libleveldb-dev ask for packages that it does not need.
function(filterbench_find_peer target header library)
  find_path(${target}_INCLUDE_DIR ${header})
  find_library(${target}_LIBRARY ${library})
  mark_as_advanced(${target}_INCLUDE_DIR ${target}_LIBRARY)
  if(${target}_INCLUDE_DIR AND ${target}_LIBRARY)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE_DIR})
    target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
  else()
    message(STATUS "${target} was not found: filters and workloads that need it are not built")
  endif()
endfunction()
