#ifndef FILTERBENCH_HARNESS_SPEC_LOCATED_JSON_H_
#define FILTERBENCH_HARNESS_SPEC_LOCATED_JSON_H_

// JSON that people write: comments are allowed, and an error can say in which line its field
// stands.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

class LocatedJson {
 public:
  // `name` is how errors call the text: a file's path. Refuses what is not JSON, and a name that
  // stands twice in one object.
  static Result<LocatedJson> Parse(std::string_view text, std::string name);
  // Reads a file of at most 1 MiB.
  static Result<LocatedJson> ReadFile(const std::string& path);

  const nlohmann::json& root() const { return root_; }
  // Changes the content; what is new has the line of what it stands in.
  nlohmann::json& mutable_root() { return root_; }

  // "specs/quick.json:12: sweeps[0].keys: problem", for a field by its JSON pointer
  // ("/sweeps/0/keys"). Where the problem starts with a name of its own, as in
  // "bits_per_key: must be ...", a deeper pointer finds the better line.
  Error At(std::string_view pointer, std::string_view problem) const;

 private:
  // Where a value stands, and those in it by their name or index. A tree, since the pointers
  // themselves would take memory by the square of the text.
  struct Place {
    size_t line = 1;
    std::map<std::string, Place, std::less<>> inner;
  };
  class Recorder;

  std::string name_;
  nlohmann::json root_;
  Place top_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_SPEC_LOCATED_JSON_H_
