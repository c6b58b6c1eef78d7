#ifndef FILTERBENCH_FILTERS_PLUGIN_ABI_H_
#define FILTERBENCH_FILTERS_PLUGIN_ABI_H_

/* The C interface of a filter that comes from a shared library of somebody else:
 *
 *   filterbench run my_spec.json --plugin ./mine.so        or  "plugins": ["./mine.so"] in the spec
 *   filterbench verify --plugin ./mine.so                  says which rule below is broken
 *
 * The library exports one function, filterbench_plugin_entry. C++ authors get all loops from one
 * class by filters/plugin/plugin.h; filters/plugin/example_plugin.cc is a whole plug-in.
 *
 * Filters work on 64-bit hashes that are uniform; equal hashes are equal keys. The rules:
 *  - A filter never denies a hash that it was built from or that it accepted.
 *  - It is a function of (hashes, values, seed): built twice it answers alike.
 *  - Any number of hashes is built, none included, and hashes at the ends of their range; too many
 *    to be offered are refused with a reason, and so may be sets with duplicates.
 *  - Batched answers are those of may_contain, for any number and place of hashes; nothing is read
 *    or written outside of the given arrays.
 *  - It keeps no state between lookups.
 * Calls come from one thread. Each filter is measured in a process of its own: one that crashes or
 * never returns loses its own rows and no others. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a field changes its meaning. New fields are only added at the end of
 * filterbench_plugin_filter: filter_bytes says which of them a plug-in knows. */
#define FILTERBENCH_PLUGIN_ABI 1

/* Room for a reason, the final 0 included. */
#define FILTERBENCH_REASON_BYTES 256

/* A numeric parameter; `values` in the calls below are in the order of `knobs`. */
typedef struct filterbench_knob {
  const char* name; /* lower_snake_case */
  const char* meaning;
  double low, high, initial; /* low <= initial <= high */
  int whole;                 /* only whole numbers if not 0, the bounds within 2^53 */
} filterbench_knob;

typedef struct filterbench_plugin_filter {
  const char* name;        /* a-z first, then a-z, 0-9 and _: 36 characters at most; no other
                              filter has it */
  const char* summary;     /* one line */
  const char* source;      /* paper or system; NULL if there is none */
  const char* fpr_formula; /* behind expected_fpr; NULL if there is none */
  int hash_bits;           /* bits of the hash that tell two keys apart, 1..64 */
  const filterbench_knob* knobs;
  size_t knob_count;

  /* A filter of n hashes; NULL where that cannot be, with the reason (0-terminated) in `reason`. */
  void* (*build)(const uint64_t* hashes, size_t n, const double* values, uint64_t seed,
                 char reason[FILTERBENCH_REASON_BYTES]);
  void (*destroy)(void* filter);
  /* 1 (maybe) or 0 (no): the reference for all other lookups. */
  int (*may_contain)(const void* filter, uint64_t hash);
  /* All bytes that a lookup may touch. */
  uint64_t (*size_in_bytes)(const void* filter);

  /* NULL where there is no such thing. Without the next four, loops call may_contain per key, which
   * no compiler can inline: the time of that call is then part of the result. */
  uint64_t (*count_batched)(const void* filter, const uint64_t* hashes, size_t n);
  uint64_t (*count_single)(const void* filter, const uint64_t* hashes, size_t n);
  /* As count_single, but lookup i + 1 cannot begin before answer i is known: the latency. */
  uint64_t (*chain)(const void* filter, const uint64_t* hashes, size_t n);
  /* Answer i into bit i % 64 of bits[i / 64], unused bits of the last word 0. */
  void (*bits_batched)(const void* filter, const uint64_t* hashes, size_t n, uint64_t* bits);

  /* False positives over absent keys asked, by theory, for this filter as it is: 0..1. */
  double (*expected_fpr)(const void* filter);
  /* The stored table, for digests. */
  const void* (*table)(const void* filter, size_t* bytes);
  /* Most bytes held at once during the build, the filter included. */
  uint64_t (*peak_build_bytes)(const void* filter);

  /* Made empty for `keys` keys, as many of which are accepted; both or none of the two. insert
   * gives 1 (accepted) or 0 (refused, nothing changed). */
  void* (*create)(uint64_t keys, const double* values, uint64_t seed,
                  char reason[FILTERBENCH_REASON_BYTES]);
  int (*insert)(void* filter, uint64_t hash);
  /* 1 (erased) or 0 (not found). Only hashes that were inserted are erased. */
  int (*erase)(void* filter, uint64_t hash);
} filterbench_plugin_filter;

typedef struct filterbench_plugin {
  uint32_t abi;          /* FILTERBENCH_PLUGIN_ABI */
  uint32_t filter_bytes; /* sizeof(filterbench_plugin_filter) */
  const filterbench_plugin_filter* const* filters;
  size_t filter_count;
} filterbench_plugin;

/* Valid as long as the library is loaded. */
const filterbench_plugin* filterbench_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif  /* FILTERBENCH_FILTERS_PLUGIN_ABI_H_ */
