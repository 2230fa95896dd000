// SPDX-License-Identifier: Apache-2.0
// How well k-means clusters agree with classes (SPEC 5.4): clusters are matched to classes one to
// one so that as many rows as possible agree; the score is their share.
#pragma once

#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/evaluate/labels.h"
#include "fungi/search/kmeans.h"

namespace fungi {

struct Overlap {
  double accuracy = 0;                    // matched rows / all rows
  std::vector<int64_t> label_of_cluster;  // -1 for a cluster without a class
  std::vector<size_t> cluster_sizes;
};

Overlap cluster_overlap(const std::vector<uint32_t>& clusters, size_t cluster_count, Labels labels);

struct ClusteringScore {
  KMeans kmeans;
  Overlap overlap;
};

// k-means with as many clusters as classes (options.clusters is set here), then the overlap.
ClusteringScore evaluate_clustering(View<const float> rows, Labels labels, KMeansOptions options,
                                    Pool& pool);

}  // namespace fungi
