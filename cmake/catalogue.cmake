# From filters/catalogue.txt, in the build tree:
#   filters/catalogue.h                     the type list `Catalogue` and the list `kFiltersNotBuilt`
#   filters/conformance/<types>_test.cc     the tests that every filter passes, for a few types each,
#                                           since most of what one costs to compile is the same for
#                                           all: `conformance_tests` names them
#   filters/conformance/of_all_<what>.cc    goldens and kernels of all our types at once, for
#                                           emulators: `tests_of_all` names them
# FILTERBENCH_ONLY, a list of types, leaves out all others.
# FILTERBENCH_EXTERNAL_FILTERS, a list of TYPE=HEADER, adds filters from outside of the tree: HEADER
# is a path, TYPE its type as seen from namespace filterbench. Files beside HEADER that have its name
# and end in .cc or _kernel.cc are built with it: `external_sources` names them.
set(FILTERBENCH_ONLY "" CACHE STRING "types of filters/catalogue.txt to build; all if empty")
set(FILTERBENCH_EXTERNAL_FILTERS "" CACHE STRING "TYPE=HEADER of filters from outside of the tree")

# One of the files <types>_test.cc; `output` becomes its path.
function(filterbench_write_conformance_test output_directory external types headers output)
  list(JOIN types "_" identifier)
  string(MAKE_C_IDENTIFIER ${identifier} identifier)
  list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
  list(JOIN includes "" includes)
  list(TRANSFORM types PREPEND "filterbench::")
  list(JOIN types ", " types)
  set(test ${output_directory}/filters/conformance/${identifier}_test.cc)
  file(CONFIGURE OUTPUT ${test} @ONLY CONTENT [=[
// Made by cmake/catalogue.cmake from filters/catalogue.txt.
@includes@
#define FILTERBENCH_TESTED_FILTER @types@
#define FILTERBENCH_TESTED_FILTER_IS_EXTERNAL @external@
#include "filters/conformance/cases.h"
#include "filters/conformance/contract.h"
#include "filters/conformance/fpr.h"
#include "filters/conformance/golden.h"
#include "filters/conformance/kernel.h"
#include "filters/conformance/params.h"
#include "filters/conformance/wire.h"
]=])
  set(${output} ${test} PARENT_SCOPE)
endfunction()

function(filterbench_generate_catalogue catalogue output_directory conformance_tests
         external_sources tests_of_all)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${catalogue})
  file(STRINGS ${catalogue} lines REGEX "^[^#]")
  set(sources "")
  foreach(filter IN LISTS FILTERBENCH_EXTERNAL_FILTERS)
    if(NOT filter MATCHES "^([A-Za-z_][A-Za-z0-9_:]*)=(.+)$")
      message(FATAL_ERROR "FILTERBENCH_EXTERNAL_FILTERS: '${filter}': expected TYPE=HEADER")
    endif()
    set(type ${CMAKE_MATCH_1})
    get_filename_component(header ${CMAKE_MATCH_2} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
    list(APPEND lines "${type} ${header}")
    string(REGEX REPLACE "\\.h$" "" stem ${header})
    foreach(source IN ITEMS ${stem}.cc ${stem}_kernel.cc)
      if(EXISTS ${source})
        list(APPEND sources ${source})
      endif()
    endforeach()
  endforeach()
  set(includes "")
  set(types "")
  set(not_built "")
  set(tests "")
  set(our_types "")
  set(our_headers "")
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
    if(IS_ABSOLUTE ${header})
      set(external 1)
      set(file ${header})
    else()
      set(external 0)
      set(file ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    endif()
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "${catalogue}: ${type}: there is no file ${header}")
    endif()
    if(count EQUAL 3)
      list(GET words 2 needed)
      if(NOT TARGET ${needed})
        list(APPEND not_built "    {\"${type}\", \"needs ${needed}, which was not found\"},\n")
        continue()
      endif()
    endif()
    if(FILTERBENCH_ONLY AND NOT external AND NOT type IN_LIST FILTERBENCH_ONLY)
      list(APPEND not_built "    {\"${type}\", \"left out by FILTERBENCH_ONLY\"},\n")
      continue()
    endif()
    string(APPEND includes "#include \"${header}\"\n")
    list(APPEND types "${type}")
    if(external)
      filterbench_write_conformance_test(${output_directory} 1 "${type}" "${header}" test)
      list(APPEND tests ${test})
    else()
      list(APPEND our_types ${type})
      list(APPEND our_headers ${header})
    endif()
  endforeach()
  foreach(type IN LISTS FILTERBENCH_ONLY)
    if(NOT type IN_LIST types AND NOT not_built MATCHES "{\"${type}\"")
      message(FATAL_ERROR "FILTERBENCH_ONLY: ${catalogue} has no type ${type}")
    endif()
  endforeach()
  list(LENGTH our_types count)
  set(types_per_test 4)
  set(first 0)
  while(first LESS count)
    list(SUBLIST our_types ${first} ${types_per_test} test_types)
    list(SUBLIST our_headers ${first} ${types_per_test} test_headers)
    filterbench_write_conformance_test(${output_directory} 0 "${test_types}" "${test_headers}" test)
    list(APPEND tests ${test})
    math(EXPR first "${first} + ${types_per_test}")
  endwhile()
  set(of_all "")
  list(JOIN our_types ", " our_types)
  foreach(what IN ITEMS golden kernel)
    set(test ${output_directory}/filters/conformance/of_all_${what}.cc)
    list(APPEND of_all ${test})
    file(CONFIGURE OUTPUT ${test} @ONLY CONTENT [=[
// Made by cmake/catalogue.cmake from filters/catalogue.txt.
#include "filters/catalogue.h"

#define FILTERBENCH_TESTED_FILTER @our_types@
#define FILTERBENCH_TESTED_FILTER_IS_EXTERNAL 0
#include "filters/conformance/@what@.h"
]=])
  endforeach()
  list(JOIN types ", " types)
  list(JOIN not_built "" not_built)
  set(${conformance_tests} ${tests} PARENT_SCOPE)
  set(${external_sources} ${sources} PARENT_SCOPE)
  set(${tests_of_all} ${of_all} PARENT_SCOPE)
  file(CONFIGURE OUTPUT ${output_directory}/filters/catalogue.h @ONLY CONTENT [=[
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
