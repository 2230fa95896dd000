// SPDX-License-Identifier: Apache-2.0
// A verb that mpirun, srun and the like may start on several machines at once.
#pragma once

#include <functional>
#include <string>

#include "fungi/comm/comm.h"

namespace fungi::app {

// Runs `body` on this rank: the only one where nobody started more. Rank 0 alone prints; what it
// returns is the exit status. Where a rank fails, or is lost, all end.
int on_ranks(const std::function<int(Comm&)>& body);

// The same for evaluations, which want the same instructions everywhere. Null: alone.
int on_equal_ranks(const std::function<int(Comm*)>& body);

// Error where mpirun started several processes of a verb that is for one.
void require_alone(const std::string& verb);

}  // namespace fungi::app
