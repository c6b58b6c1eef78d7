# shellcheck shell=bash
# Sourced. usage ARGUMENT prints the comment at the head of the calling script and ends it: a request
# for help succeeds, any other ARGUMENT is an error.
usage() {
  local head
  head=$(sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0")
  if [[ $1 == -h || $1 == --help ]]; then
    printf '%s\n' "$head"
    exit 0
  fi
  printf '%s: what is %s?\n\n%s\n' "${0##*/}" "$1" "$head" >&2
  exit 2
}
