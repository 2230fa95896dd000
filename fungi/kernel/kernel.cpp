// SPDX-License-Identifier: Apache-2.0
#include "fungi/kernel/kernel.h"
namespace fungi { const char* to_string(Precision p) { return p == Precision::f32 ? "f32" : "bf16"; } }
