#ifndef FILTERBENCH_FILTERS_NEAREST_NAME_H_
#define FILTERBENCH_FILTERS_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace filterbench {

// "unknown parameter 'bits_pr_key' (did you mean 'bits_per_key'?)", or the list of all names where
// none is near. Distance: Damerau-Levenshtein over adjacent swaps.
std::string UnknownName(std::string_view what, std::string_view given,
                        std::span<const std::string> names);

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_NEAREST_NAME_H_
