// SPDX-License-Identifier: Apache-2.0
// FUNGI_CLONES before a function compiles its plain loops twice, for the x86-64 baseline and for
// AVX2; the loader picks. AVX2 alone brings no fused multiply-add, so both copies give the same
// bits, in float code too. Internal to this room.
#pragma once

#include <cstddef>  // tells whether this is glibc, whose loader can choose

#if defined(__SANITIZE_THREAD__)
#define FUNGI_NO_CLONES  // the loader asks for the choice before the sanitizer is awake
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FUNGI_NO_CLONES
#endif
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(FUNGI_NO_CLONES)
#define FUNGI_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define FUNGI_CLONES
#endif
