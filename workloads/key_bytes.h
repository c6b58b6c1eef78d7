#ifndef FILTERBENCH_WORKLOADS_KEY_BYTES_H_
#define FILTERBENCH_WORKLOADS_KEY_BYTES_H_

// Keys as a store holds them: strings of bytes.

#include <cstdint>
#include <string>

#include "workloads/keys.h"

namespace filterbench {

// The key at an index: its bytes, of an integer key the eight of it with the highest first, so that
// strings sort as the integers do.
std::string KeyBytes(const KeySet& key_set, uint64_t index);

// `bytes` pseudo-random bytes that follow from the key, so that an answer can be checked without
// keeping what was written.
std::string ValueOf(std::string_view key, uint64_t bytes);

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_KEY_BYTES_H_
