#ifndef FILTERBENCH_HARNESS_SPEC_CHANGES_H_
#define FILTERBENCH_HARNESS_SPEC_CHANGES_H_

// What a command line changes in a spec before it is read: one sweep, asked for in other sizes or
// with other care, needs no file of its own.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "filters/result.h"
#include "harness/spec/located_json.h"

namespace filterbench {

enum class Care {
  kAsSpecified,
  kQuick,     // a first look: two processes, a build each, short passes, no width asked
  kRigorous,  // for a paper: at least four processes, up to twenty, an interval of 1 %
};

struct SpecChanges {
  Care care = Care::kAsSpecified;
  std::optional<uint64_t> seed;
  // "name=value", later ones win. The name is a field of `measure` ("passes"), a list of every sweep
  // ("keys"), or a parameter of a filter ("cuckoo.fingerprint_bits"); the value is JSON, or words
  // separated by commas.
  std::vector<std::string> settings;

  bool empty() const { return care == Care::kAsSpecified && !seed && settings.empty(); }
};

// Errors name the setting.
std::optional<Error> Apply(const SpecChanges& changes, LocatedJson& spec);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_SPEC_CHANGES_H_
