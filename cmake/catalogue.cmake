# Makes filters/catalogue.h (the type list `Catalogue` and the list `kFiltersNotBuilt`) in the build
# tree from filters/catalogue.txt.
function(filterbench_generate_catalogue catalogue output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${catalogue})
  file(STRINGS ${catalogue} lines REGEX "^[^#]")
  set(includes "")
  set(types "")
  set(not_built "")
  foreach(line IN LISTS lines)
    separate_arguments(words UNIX_COMMAND "${line}")
    list(LENGTH words count)
    if(count EQUAL 0)
      continue()
    elseif(count LESS 2 OR count GREATER 3)
      message(FATAL_ERROR "${catalogue}: '${line}': expected TYPE HEADER [CMAKE_TARGET]")
    endif()
    list(GET words 0 type)
    list(GET words 1 header)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "${catalogue}: ${type}: there is no file ${header}")
    endif()
    if(count EQUAL 3)
      list(GET words 2 needed)
      if(NOT TARGET ${needed})
        list(APPEND not_built "    {\"${type}\", \"needs ${needed}, which was not found\"},\n")
        continue()
      endif()
    endif()
    string(APPEND includes "#include \"${header}\"\n")
    list(APPEND types "${type}")
  endforeach()
  list(JOIN types ", " types)
  list(JOIN not_built "" not_built)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [=[
// Made by cmake/catalogue.cmake from filters/catalogue.txt.
#ifndef FILTERBENCH_FILTERS_CATALOGUE_H_
#define FILTERBENCH_FILTERS_CATALOGUE_H_

#include <vector>

@includes@#include "filters/type_list.h"

namespace filterbench {

using Catalogue = TypeList<@types@>;

inline const std::vector<FilterNotBuilt> kFiltersNotBuilt = {
@not_built@};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CATALOGUE_H_
]=])
endfunction()
