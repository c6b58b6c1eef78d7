#include "harness/explain/examples.h"

namespace filterbench::explain {

std::span<const Example> Examples() {
  static const auto* const examples = new std::vector<Example>{
      {.name = "worked",
       .request = {.title = "A Bloom filter by hand",
                   .lead = "Each key sets k bits. A key whose k bits are all set may have been "
                           "added; a key with one bit unset cannot have been.",
                   .shape = {.bits = 32, .k = 3, .hashing = Hashing::kByHand},
                   .by_hand = {{"apple", {2, 14, 27}},
                               {"mango", {5, 11, 20}},
                               {"kiwi", {2, 9, 20}},
                               {"grape", {5, 14, 27}}},
                   .add = {"apple", "mango"},
                   .ask = {"apple", "kiwi", "grape"}}},
      {.name = "empty",
       .request = {.title = "An empty filter",
                   .lead = "Where no bit is set, the answer is no to every key.",
                   .ask = {"apple"}}},
      {.name = "md5",
       .in_tour = false,
       .request = {.title = "One digest, three positions",
                   .lead = "The positions of a key are three 4-byte windows of its MD5 digest, "
                           "little-endian, modulo m. Anybody can check them with md5sum.",
                   .shape = {.bits = 64, .k = 3, .hashing = Hashing::kMd5},
                   .add = {"apple", "mango"},
                   .ask = {"apple", "kiwi", "grape"}}},
      {.name = "saturation",
       .request = {.title = "Saturation",
                   .lead = "The fuller a filter, the more absent keys find all their bits set.",
                   .saturate = true}},
      {.name = "deletion",
       .request = {.title = "Deleting from a plain Bloom filter",
                   .lead = "To delete a key by clearing its bits takes them from every other key "
                           "that shares one.",
                   .shape = {.bits = 32},
                   .add = {"apple", "mango", "cherry", "melon", "olive"},
                   .remove = {"apple"},
                   .ask = {"apple", "melon"}}},
  };
  return *examples;
}

std::vector<std::string_view> ExampleNames() {
  std::vector<std::string_view> names;
  for (const Example& example : Examples()) names.push_back(example.name);
  return names;
}

const Example* FindExample(std::string_view name) {
  for (const Example& example : Examples()) {
    if (example.name == name) return &example;
  }
  return nullptr;
}

}  // namespace filterbench::explain
