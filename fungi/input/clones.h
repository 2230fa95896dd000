// SPDX-License-Identifier: Apache-2.0
// FUNGI_CLONES before a function compiles its plain loops several times, for the x86-64 baseline,
// for AVX2 and, by GCC, for AVX-512; the loader picks. The library is compiled without contraction,
// so all copies give the same bits, in float code too. Internal to this room.
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
#if defined(__clang__)
#define FUNGI_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define FUNGI_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif
#else
#define FUNGI_CLONES
#endif
