# `quick_test`: two filters and what they stand on, and the parts of the harness where threads and
# processes meet, in one executable that a sanitizer's build has in a few minutes from nothing
# (scripts/sanitize --quick). Built on demand only, where FILTERBENCH_ONLY names these two.
set(quick_types SplitBlock BinaryFuse)

function(filterbench_add_quick_test conformance_tests)
  if(NOT "${FILTERBENCH_ONLY}" STREQUAL "${quick_types}")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
       filters/simd/*.cc filters/theory/*.cc filters/bloom/split_block_kernel.cc
       filters/fuse/binary_fuse*.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzzer)\\.cc$")
  list(APPEND sources
       filters/table.cc filters/wire.cc filters/nearest_name.cc
       filters/memory_test.cc filters/table_test.cc filters/wire_test.cc
       # Threads that measure, and children that are watched.
       harness/run/threads.cc harness/run/threads_test.cc harness/run/measure.cc
       harness/machine/clock_step.cc harness/machine/perf_counters.cc harness/machine/cpuid.cc
       harness/machine/cpu_identity.cc harness/machine/core_clock.cc harness/machine/cpu_times.cc
       harness/machine/cpu_affinity.cc harness/machine/system_files.cc
       harness/process/isolated.cc harness/process/isolated_test.cc)
  add_executable(quick_test EXCLUDE_FROM_ALL ${sources} ${conformance_tests})
  target_link_libraries(quick_test PRIVATE
    filterbench_options filterbench_highway PkgConfig::xxhash fmt::fmt nlohmann_json::nlohmann_json
    benchmark::benchmark PkgConfig::hwloc GTest::gmock GTest::gtest_main)
  target_compile_definitions(quick_test
    PRIVATE FILTERBENCH_FILTERS_DIRECTORY="${CMAKE_CURRENT_SOURCE_DIR}/filters")
endfunction()
