// SPDX-License-Identifier: Apache-2.0
// Exact neighbours and votes on plain arrays, for estimators.
#include "python/watch.h"

namespace fungi::python {
namespace {

Neighbours nearest(const Array<float>& database, const Array<float>& queries, size_t k,
                   const std::string& metric, bool skip_same_row, unsigned threads) {
  const View<const float> rows = view_of(database), asked = view_of(queries);
  const KnnOptions options{.metric = parse_metric(metric), .skip_same_row = skip_same_row};
  Watch watch;
  Neighbours found;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    found = knn(rows, asked, k, pool, options);
  });
  return found;
}

nb::tuple neighbours_of(const Array<float>& database, const Array<float>& queries, size_t k,
                        const std::string& metric, bool skip_same_row, unsigned threads) {
  Neighbours found = nearest(database, queries, k, metric, skip_same_row, threads);
  return nb::make_tuple(to_numpy(std::move(found.index)), to_numpy(std::move(found.value)));
}

}  // namespace

void add_neighbours(nb::module_& m) {
  m.def("neighbours", neighbours_of, nb::arg("database"), nb::arg("queries"), nb::arg("k"),
        nb::arg("metric"), nb::arg("skip_same_row"), nb::arg("threads"));
  m.def(
      "vote",
      [](nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> index,
         nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> value,
         nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> labels,
         const std::string& kind) {
        Neighbours found{Matrix<uint32_t>(index.shape(0), index.shape(1)),
                         Matrix<double>(value.shape(0), value.shape(1))};
        std::copy_n(index.data(), index.size(), found.index.data());
        std::copy_n(value.data(), value.size(), found.value.data());
        Votes votes = vote(found, Labels(labels.data(), labels.size()),
                           kind == "uniform" ? Vote::uniform : Vote::distance);
        return to_numpy(std::move(votes.predicted));
      },
      nb::arg("index"), nb::arg("value"), nb::arg("labels"), nb::arg("kind"));
}

}  // namespace fungi::python
