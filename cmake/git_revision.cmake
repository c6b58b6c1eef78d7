# Writes the header harness/machine/git_revision.h, only when its content changes, so that it can
# run at every build without rebuilding anything:
#
#   cmake -DSOURCE_DIR=<repository> -DOUTPUT=<build>/harness/machine/git_revision.h
#         -P cmake/git_revision.cmake
#
#   FILTERBENCH_GIT_COMMIT   "<40 hex digits>", or "" when not known
#   FILTERBENCH_GIT_DIRTY    1 when files differ from the commit or are untracked, else 0
#   FILTERBENCH_GIT_REASON   why the commit is not known, else ""

cmake_minimum_required(VERSION 3.25)

foreach(variable SOURCE_DIR OUTPUT)
  if(NOT ${variable})
    message(FATAL_ERROR "git_revision.cmake: -D${variable}=... is missing")
  endif()
endforeach()

# Git hooks set these, and they would name another repository than the sources'.
foreach(variable GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE)
  unset(ENV{${variable}})
endforeach()

set(commit "")
set(dirty 0)
set(reason "")

# Result in `output`; on failure `reason` is set.
macro(run_git)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" --no-optional-locks ${ARGN}
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE output
    ERROR_VARIABLE error
    RESULT_VARIABLE result
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    if("${error}" MATCHES "^([^\n]+)")
      set(reason "${CMAKE_MATCH_1}")
    else()
      string(JOIN " " reason git ${ARGN} failed)
    endif()
  endif()
endmacro()

find_program(GIT_EXECUTABLE git)
if(NOT GIT_EXECUTABLE)
  set(reason "git is not installed")
endif()

# Sources unpacked inside of someone else's repository must not take its commit for their own.
if(reason STREQUAL "")
  run_git(rev-parse --show-toplevel)
  if(reason STREQUAL "")
    file(REAL_PATH "${output}" top_level)
    file(REAL_PATH "${SOURCE_DIR}" source)
    if(NOT top_level STREQUAL source)
      set(reason "the source directory is not the top of a git repository")
    endif()
  endif()
endif()
if(reason STREQUAL "")
  run_git(rev-parse --verify HEAD)
  set(head "${output}")
endif()
if(reason STREQUAL "")
  run_git(status --porcelain --untracked-files=normal)
  if(reason STREQUAL "")
    set(commit "${head}")
    if(NOT output STREQUAL "")
      set(dirty 1)
    endif()
  endif()
endif()

string(REPLACE "\\" "\\\\" reason "${reason}")
string(REPLACE "\"" "\\\"" reason "${reason}")
set(content "// Written by cmake/git_revision.cmake at every build.

#ifndef FILTERBENCH_HARNESS_MACHINE_GIT_REVISION_H_
#define FILTERBENCH_HARNESS_MACHINE_GIT_REVISION_H_

#define FILTERBENCH_GIT_COMMIT \"${commit}\"
#define FILTERBENCH_GIT_DIRTY ${dirty}
#define FILTERBENCH_GIT_REASON \"${reason}\"

#endif  // FILTERBENCH_HARNESS_MACHINE_GIT_REVISION_H_
")

set(previous "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" previous)
endif()
if(NOT previous STREQUAL content)
  file(WRITE "${OUTPUT}" "${content}")
endif()
