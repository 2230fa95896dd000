// SPDX-License-Identifier: Apache-2.0
// How parameters of tests are printed, in ctest's list as in messages: by name, not as bytes or an
// address. GoogleTest finds these functions by their arguments; every file with such a parameter
// includes this one.
#pragma once

#include <ostream>

#include "fungi/base/cpu.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

inline void PrintTo(Isa isa, std::ostream* out) { *out << to_string(isa); }
inline void PrintTo(Precision precision, std::ostream* out) { *out << to_string(precision); }

namespace kernel {
inline void PrintTo(const Kernel* table, std::ostream* out) { *out << table->name; }
}  // namespace kernel

}  // namespace fungi
