#ifndef FILTERBENCH_WORKLOADS_ADVERSARIAL_ADVERSARIAL_KEYS_H_
#define FILTERBENCH_WORKLOADS_ADVERSARIAL_ADVERSARIAL_KEYS_H_

// Keys chosen by somebody who knows the seeds: what they do to a filter, and what fresh seeds mend.
//
// The attacker knows the seed of the key hash and that of the filter, and can try out the filter
// at leisure; of its structure nothing is known. Attacks (Gerbet, Kumar, Lauradoux, "The power of
// evil choices in Bloom filters", 2015, calls them query-only and chosen-insertion):
//   false_positives  absent keys that this filter lets through, found by asking it;
//   pile_up          keys to insert whose key hashes are the smallest of the candidates, so that
//                    they share their high bits, which choose the place in many filters; keys to
//                    ask likewise;
//   collide          keys to insert that a filter with one key in it lets through: they crowd that
//                    key's places. Needs a filter that takes single keys;
//   none             as many keys that nobody chose: what the others are compared with.
// The attacker's keys come first.
//
// A filter works on 64-bit key hashes. A fresh seed of a filter moves what it derives with that
// seed: nothing where all its places are bits of the key hash. Two keys of one key hash collide
// under all filter seeds. Search by brute force finds no such keys, but XXH3 is no keyed hash: who
// knows its seed may construct them, so what is met here is the least that such an attacker can do.

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

std::unique_ptr<Workload> MakeAdversarialKeys();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_ADVERSARIAL_ADVERSARIAL_KEYS_H_
