#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Objects compiled for one instruction set must not leak into the rest of the program: a weak symbol (an inline function
# or template instance) may be chosen by the linker for everybody, and a static initialiser runs on every machine.
# Usage: check_isa_objects.sh OBJECT...
set -eu
[ $# -gt 0 ] || { echo "no objects given" >&2; exit 2; }
status=0
for object in "$@"; do
  weak=$(nm --defined-only --demangle "$object" | grep -E ' [WwVvu] ' || true)
  if [ -n "$weak" ]; then
    printf '%s: weak symbols:\n%s\n' "$object" "$weak" >&2
    status=1
  fi
  if objdump --section-headers "$object" | grep -E '\.(init_array|ctors|preinit_array)'; then
    echo "$object: has a static initialiser" >&2
    status=1
  fi
  public=$(nm --defined-only --extern-only --demangle "$object" | sed 's/^[0-9a-f]* [A-Z] //')
  if [ -z "$public" ] || echo "$public" | grep -vE '^fungi::(kernel::[a-z0-9_]+_(f32|bf16|int8)|(search::)?k(Scan|Eigen|Covariance)[A-Za-z0-9]+)$' >&2; then
    echo "$object: exports something other than its tables" >&2
    status=1
  fi
done
exit $status
