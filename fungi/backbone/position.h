// SPDX-License-Identifier: Apache-2.0
// Position tables: bringing a stored grid to another one the way each family does it
// (SPEC 3.2-B, 3.2-D, 4), rotary angles, and T5's relative buckets. Internal to this room.
#pragma once

#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/base/matrix.h"

namespace fungi {

// table [stored_h·stored_w, d] → [grid_h·grid_w, d]; unchanged when the grids agree.
Matrix<float> resize_positions(View<const float> table, size_t stored_h, size_t stored_w,
                               size_t grid_h, size_t grid_w, PositionResize how);

// One axis of such a resize as a dense matrix [to, from]; exposed for its tests (SPEC 7.4).
Matrix<double> position_resize_weights(size_t from, size_t to, PositionResize how);

// Rotary angles of every patch: [grid_h·grid_w, head_dim], each angle standing twice (SPEC 4.1):
// side by side, or of centred ones in either half.
Matrix<float> rotary_angles(const Architecture& a);

// As blocks read them: [rows, 2·columns], cosines, then sines.
Matrix<float> cosines_and_sines(const Matrix<float>& angles);

// Those of words: [positions, head_dim], angle j of a half standing again in the other one.
Matrix<float> word_angles(size_t positions, size_t head_dim, float theta);

// Whether there are buckets for near and for far tokens in both directions; otherwise
// relative_bucket() divides by zero.
bool relative_buckets_fit(size_t buckets, size_t max_distance);

// T5: the bucket of (key position − query position), both directions (SPEC 4.2).
size_t relative_bucket(long key_minus_query, size_t buckets, size_t max_distance);

}  // namespace fungi
