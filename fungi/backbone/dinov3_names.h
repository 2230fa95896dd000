// SPDX-License-Identifier: Apache-2.0
// DINOv3 in its authors' names. Internal to this room.
#pragma once

#include "fungi/backbone/names.h"

namespace fungi {

// For files without registers, which are then named as missing; kDinov3AuthorsNames is for those
// with them, and perhaps without angles.
extern const Dialect kDinov3PeriodsNames;

// The angles of rotary positions, which the file carries and the encoder computes. Error where they
// are others; nothing where the file is not in the authors' names.
void check_periods(const Checkpoint& checkpoint, const Reading& reading);

}  // namespace fungi
