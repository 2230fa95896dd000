// SPDX-License-Identifier: Apache-2.0
// What of DINOv3's own files has to be read to be believed. Internal to this room.
#pragma once

#include "fungi/backbone/recipes.h"

namespace fungi {

// The angles of rotary positions, which the file carries and the encoder computes. Error where they
// are others; nothing where the file is not in the authors' names.
void check_periods(const Checkpoint& checkpoint, const Reading& reading);

}  // namespace fungi
