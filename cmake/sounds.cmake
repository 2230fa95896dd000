# SPDX-License-Identifier: Apache-2.0
# What sounds need and not every build has, each used in one file. Included after pictures.cmake.
fungi_optional_library(SNDFILE "Read sounds" sndfile libsndfile1-dev)
fungi_optional_library(SOXR "Bring sounds to the rate of a model" soxr libsoxr-dev)
fungi_optional_library(KISSFFT "Compute the filter banks of sounds" kissfft-float libkissfft-dev)
