# Makes a header in the build tree that holds filters/presets.json, so that the program needs no file.
function(filterbench_embed_presets presets output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${presets})
  file(READ ${presets} text)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [=[
// Made by cmake/embed_presets.cmake from filters/presets.json.
#ifndef FILTERBENCH_FILTERS_PRESETS_JSON_H_
#define FILTERBENCH_FILTERS_PRESETS_JSON_H_

#include <string_view>

namespace filterbench {

inline constexpr std::string_view kPresetsJson = R"presets(@text@)presets";

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PRESETS_JSON_H_
]=])
endfunction()
