# Makes a header in the build tree that holds the JSON schemas of a directory: the program checks
# what it writes against the same files that other readers use.
function(filterbench_embed_schemas directory output)
  file(GLOB schemas CONFIGURE_DEPENDS ${directory}/*.json)
  list(SORT schemas)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schemas})
  set(entries "")
  foreach(schema IN LISTS schemas)
    get_filename_component(name ${schema} NAME_WE)
    file(READ ${schema} text)
    string(APPEND entries "    {\"${name}\", R\"schema(${text})schema\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [=[
// Made by cmake/embed_schemas.cmake from results/schema/.
#ifndef FILTERBENCH_HARNESS_RECORD_SCHEMAS_H_
#define FILTERBENCH_HARNESS_RECORD_SCHEMAS_H_

#include <string_view>

namespace filterbench {

struct EmbeddedSchema {
  std::string_view name;
  std::string_view text;
};

inline constexpr EmbeddedSchema kEmbeddedSchemas[] = {
@entries@};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_SCHEMAS_H_
]=])
endfunction()
