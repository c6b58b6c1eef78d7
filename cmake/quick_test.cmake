# `quick_test`: a few filters and what they stand on, and the parts of the harness where threads and
# processes meet, in one executable that a sanitizer's build has in a few minutes from nothing
# (scripts/sanitize --quick). Built on demand only. FILTERBENCH_ONLY must name some of these types,
# and no others.
set(quick_types ClassicBloom SplitBlock Cuckoo BinaryFuse)

function(filterbench_add_quick_test conformance_tests)
  if(NOT FILTERBENCH_ONLY)
    return()
  endif()
  foreach(type IN LISTS FILTERBENCH_ONLY)
    if(NOT type IN_LIST quick_types)
      return()
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
       filters/*.cc filters/simd/*.cc filters/theory/*.cc filters/bloom/classic*.cc
       filters/bloom/split_block*.cc filters/cuckoo/cuckoo*.cc filters/fuse/binary_fuse*.cc
       filters/fuse/positions_test.cc)
  list(FILTER sources EXCLUDE REGEX "filters/theory/.*_test\\.cc$|_fuzzer\\.cc$|/presets_test\\.cc$")
  # Threads that measure, and children that are watched.
  list(APPEND sources
       harness/run/threads.cc harness/run/threads_test.cc
       harness/machine/cpu_affinity.cc harness/machine/system_files.cc
       harness/machine/activity.cc harness/machine/activity_test.cc harness/machine/core_clock.cc
       harness/machine/cpu_identity.cc harness/machine/cpu_times.cc harness/machine/cgroup.cc
       harness/process/isolated.cc harness/process/isolated_test.cc)
  add_executable(quick_test EXCLUDE_FROM_ALL ${sources} ${conformance_tests})
  target_link_libraries(quick_test PRIVATE
    filterbench_options filterbench_highway PkgConfig::xxhash fmt::fmt nlohmann_json::nlohmann_json
    benchmark::benchmark PkgConfig::hwloc GTest::gmock GTest::gtest_main)
  target_compile_definitions(quick_test
    PRIVATE FILTERBENCH_FILTERS_DIRECTORY="${CMAKE_CURRENT_SOURCE_DIR}/filters")
endfunction()
