// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/clustering.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/evaluate/hungarian.h"

namespace fungi {

Overlap cluster_overlap(const std::vector<uint32_t>& clusters, size_t cluster_count,
                        Labels labels) {
  check_label_count(labels, clusters.size());
  const Classes classes = classes_of(labels);
  Matrix<double> common(cluster_count, classes.count());
  Overlap out;
  out.cluster_sizes.assign(cluster_count, 0);
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (clusters[i] >= cluster_count)
      fail(fmt::format("expected clusters below {}, row {} has {}", cluster_count, i, clusters[i]),
           "clusters", "");
    common(clusters[i], classes.index[i]) += 1;
    ++out.cluster_sizes[clusters[i]];
  }
  const std::vector<size_t> match = best_assignment(common);
  double matched = 0;
  for (size_t c = 0; c < cluster_count; ++c) {
    out.label_of_cluster.push_back(match[c] == kUnassigned ? -1 : classes.labels[match[c]]);
    if (match[c] != kUnassigned) matched += common(c, match[c]);
  }
  out.accuracy = matched / double(clusters.size());
  return out;
}

ClusteringScore evaluate_clustering(View<const float> rows, Labels labels, KMeansOptions options,
                                    Pool& pool) {
  check_label_count(labels, rows.rows);
  options.clusters = classes_of(labels).count();
  ClusteringScore score;
  score.kmeans = kmeans(rows, options, pool);
  score.overlap = cluster_overlap(score.kmeans.assignment, options.clusters, labels);
  return score;
}

}  // namespace fungi
