// SPDX-License-Identifier: Apache-2.0
// Where results may not be written.
// Internal to the library.
#pragma once

#include <filesystem>

#include "fungi/store/store.h"

namespace fungi {

// Error when `out` would lie in the store, or in any other or an index: they hold nothing but their
// own files.
void require_outside(const Store& store, const std::filesystem::path& out);

}  // namespace fungi
