// SPDX-License-Identifier: Apache-2.0
// Unigram: the pieces whose scores sum to the most. Internal to this room.
#pragma once

#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"

namespace fungi::token {

ModelPtr read_unigram(PartFields& part);

}  // namespace fungi::token
